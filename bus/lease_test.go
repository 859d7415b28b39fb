package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func leaseJob() *bus.Job {
	return &bus.Job{Command: forge.Command{
		To: key, Attempt: forge.Attempt{Task: "fix-001", Step: forge.StepImplement, Number: 1, Claim: 1}, Input: &forge.ImplementInput{},
	}}
}

func acquire(t *testing.T, b *bus.Bus, replica forge.ReplicaID, life string) *bus.Lease {
	t.Helper()
	l, err := b.AcquireLease(wait.Context(t), leaseJob(), bus.LeaseHolder{Replica: replica, Life: life})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// One replica at a time works on a task; the next one begins when it is done.
func TestLease(t *testing.T) {
	b := bustest.Start(t)
	one := acquire(t, b, "a", "1")
	soon := wait.Briefly(t, 100*time.Millisecond)
	for _, h := range []bus.LeaseHolder{{Replica: "b", Life: "1"}, {Replica: "a", Life: "1"}} {
		if _, err := b.AcquireLease(soon, leaseJob(), h); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: %v", h, err)
		}
	}
	other := leaseJob()
	other.Command.Attempt.Task = "fix-002"
	if _, err := b.AcquireLease(wait.Context(t), other, bus.LeaseHolder{Replica: "b", Life: "1"}); err != nil {
		t.Errorf("another task: %v", err)
	}
	if err := errors.Join(one.Held(), one.Renew(t.Context())); err != nil {
		t.Error(err)
	}
	one.Release(t.Context())
	two := acquire(t, b, "b", "1")
	if err := errors.Join(two.Held(), two.Renew(t.Context())); err != nil {
		t.Error(err)
	}
	if one.Held() == nil {
		t.Error("a lease that was released is held")
	}
}

// A replica that starts again takes its leases over; who thinks that it still has
// one finds out, and does not disturb the new holder.
func TestLeaseOfAFormerLife(t *testing.T) {
	b := bustest.Start(t)
	old := acquire(t, b, "a", "1")
	now := acquire(t, b, "a", "2")
	if err := old.Renew(t.Context()); !errors.Is(err, bus.ErrLeaseLost) || old.Held() == nil {
		t.Errorf("got %v", err)
	}
	old.Release(t.Context())
	if err := errors.Join(now.Held(), now.Renew(t.Context())); err != nil {
		t.Error(err)
	}
}

// A process that was stopped, or cut off, for long notices before it does anything,
// also when nobody took over.
func TestLeaseAfterALongPause(t *testing.T) {
	b := bustest.Start(t)
	l := acquire(t, b, "a", "1")
	l.Age(bus.LeaseGrace + time.Second)
	if err := l.Held(); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
	if err := l.Renew(t.Context()); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
}

// The server starts again without what it knew: the holder goes on.
func TestLeaseThatTheServerLost(t *testing.T) {
	b := bustest.Start(t)
	l := acquire(t, b, "a", "1")
	if err := b.PurgeLeases(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Renew(t.Context()), l.Held()); err != nil {
		t.Error(err)
	}
	if err := l.Renew(t.Context()); err != nil {
		t.Error(err)
	}
}

// A replica that starts again hands back at once what its former life had taken:
// the server would take half a minute to find out.
func TestHandBack(t *testing.T) {
	b := bustest.Start(t)
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	dispatch(t, b, leaseJob().Command)
	deliveries := make(chan int, 2)
	done := make(chan error, 1)
	go func() {
		done <- b.ConsumeCommands(ctx, bus.WorkConfig{Step: forge.StepImplement, Replica: "a", Parallel: 2}, func(ctx context.Context, job *bus.Job) error {
			if job.Attempt == 1 {
				if _, err := b.AcquireLease(ctx, job, bus.LeaseHolder{Replica: "a", Life: "1"}); err != nil {
					t.Error(err)
				}
			}
			deliveries <- job.Attempt
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	if n := <-deliveries; n != 1 {
		t.Errorf("delivery %d", n)
	}
	for _, h := range []bus.LeaseHolder{{Replica: "a", Life: "1"}, {Replica: "b", Life: "2"}, {Replica: "a", Life: "2"}} {
		if len(deliveries) > 0 {
			t.Error("it was handed back by somebody else")
		}
		if err := b.HandBack(wait.Context(t), h, forge.StepImplement); err != nil {
			t.Fatal(err)
		}
	}
	if n := wait.For(t, deliveries); n != 2 {
		t.Errorf("delivery %d", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
