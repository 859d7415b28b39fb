package work_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

var key = forge.Key{Project: "shop", Intent: "fix-login"}

func dispatch(t testing.TB, b *bus.Bus, list ...forge.Command) {
	t.Helper()
	if err := b.Effects.Dispatch(wait.Context(t), key, forge.Effects{Commands: list}); err != nil {
		t.Fatal(err)
	}
}

func leaseJob() *work.Job {
	return &work.Job{Command: forge.Command{
		To: key, Attempt: forge.Attempt{Task: "fix-001", Step: forge.StepImplement, Number: 1, Claim: 1}, Input: &forge.ImplementInput{},
	}}
}

func acquire(t *testing.T, b *bus.Bus, replica forge.ReplicaID, life string) *work.Lease {
	t.Helper()
	l, err := b.Leases.Acquire(wait.Context(t), leaseJob(), work.LeaseHolder{Replica: replica, Life: life})
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
	for _, h := range []work.LeaseHolder{{Replica: "b", Life: "1"}, {Replica: "a", Life: "1"}} {
		if _, err := b.Leases.Acquire(soon, leaseJob(), h); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: %v", h, err)
		}
	}
	other := leaseJob()
	other.Command.Attempt.Task = "fix-002"
	if _, err := b.Leases.Acquire(wait.Context(t), other, work.LeaseHolder{Replica: "b", Life: "1"}); err != nil {
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

// TestLeaseOfAForge: one gateway at a time watches a forge, and leases on steps
// of a project of the same name are others.
func TestLeaseOfAForge(t *testing.T) {
	b := bustest.Start(t)
	watch := func(ctx context.Context, forgeName string, replica forge.ReplicaID) (*work.Lease, error) {
		return b.Leases.AcquireWatch(ctx, forgeName, work.LeaseHolder{Replica: replica, Life: "1"})
	}
	one, err := watch(wait.Context(t), "shop", "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch(wait.Briefly(t, 100*time.Millisecond), "shop", "b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the forge is watched twice: %v", err)
	}
	if _, err := watch(wait.Context(t), "other", "b"); err != nil {
		t.Errorf("another forge: %v", err)
	}
	if at, err := b.Leases.AtWork(wait.Context(t), "shop"); err != nil || len(at) > 0 {
		t.Errorf("at work are %v, %v", at, err)
	}
	one.Release(t.Context())
	if two, err := watch(wait.Context(t), "shop", "b"); err != nil || two.Held() != nil {
		t.Errorf("after it was given back: %v", err)
	}
	for _, bad := range []string{"", "a.b", "*", "No Id"} {
		if _, err := watch(wait.Context(t), bad, "a"); err == nil {
			t.Errorf("%q is taken for the name of a forge", bad)
		}
	}
}

// The connection is lost after the server has written a lease and before it could say so: the
// replica has the lease, and does not wait for the end of its own.
func TestLeaseWhoseConfirmationIsLost(t *testing.T) {
	s := bustest.StartServer(t)
	s.Connect(t)
	via := losesAnAnswer(t, strings.TrimPrefix(s.URL(), "nats://"), "PUB forge.lease.")
	b, err := bus.Connect(wait.Context(t), bus.Config{URL: "nats://" + via, Name: t.Name(), Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	// Less than a lease lasts.
	l, err := b.Leases.Acquire(wait.Briefly(t, 20*time.Second), leaseJob(), work.LeaseHolder{Replica: "a", Life: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Held(), l.Renew(t.Context())); err != nil {
		t.Error(err)
	}
	other := work.LeaseHolder{Replica: "b", Life: "1"}
	if _, err := b.Leases.Acquire(wait.Briefly(t, 100*time.Millisecond), leaseJob(), other); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another replica: %v", err)
	}
}

// losesAnAnswer returns an address behind which a server is. The first connection on which a
// client says something passes it on, and ends when the server answers.
func losesAnAnswer(t *testing.T, server, said string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var once sync.Once
	pass := func(client net.Conn) {
		to, err := net.Dial("tcp", server)
		if err != nil {
			_ = client.Close()
			return
		}
		var lose atomic.Bool
		copyUnless := func(to, from net.Conn, check func([]byte) bool) {
			defer func() { _, _ = to.Close(), from.Close() }()
			buf := make([]byte, 64<<10)
			for {
				n, err := from.Read(buf)
				if err != nil || check(buf[:n]) {
					return
				}
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
			}
		}
		running.Go(func() {
			copyUnless(to, client, func(data []byte) bool {
				if bytes.Contains(data, []byte(said)) {
					once.Do(func() { lose.Store(true) })
				}
				return false
			})
		})
		copyUnless(client, to, func([]byte) bool { return lose.Load() })
	}
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { pass(client) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return listener.Addr().String()
}

// A replica that starts again takes its leases over; who thinks that it still has
// one finds out, and does not disturb the new holder.
func TestLeaseOfAFormerLife(t *testing.T) {
	b := bustest.Start(t)
	old := acquire(t, b, "a", "1")
	now := acquire(t, b, "a", "2")
	if err := old.Renew(t.Context()); !errors.Is(err, work.ErrLeaseLost) || old.Held() == nil {
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
	l.Age(work.LeaseGrace + time.Second)
	if err := l.Held(); !errors.Is(err, work.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
	if err := l.Renew(t.Context()); !errors.Is(err, work.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
}

// The server starts again without what it knew: the holder goes on.
func TestLeaseThatTheServerLost(t *testing.T) {
	b := bustest.Start(t)
	l := acquire(t, b, "a", "1")
	if err := b.Leases.Purge(wait.Context(t)); err != nil {
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
// the server would take seconds to find out, and others half a minute to wait for the lease.
func TestHandBack(t *testing.T) {
	b := bustest.Start(t)
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	dispatch(t, b, leaseJob().Command)
	deliveries := make(chan int, 100) // more than there can be: a handler that cannot send would never end
	done := make(chan error, 1)
	go func() {
		done <- b.Commands.Consume(ctx, work.Config{Step: forge.StepImplement, Replica: "a", Parallel: 2}, func(ctx context.Context, job *work.Job) error {
			if job.Attempt == 1 {
				if _, err := b.Leases.Acquire(ctx, job, work.LeaseHolder{Replica: "a", Life: "1"}); err != nil {
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
	for _, h := range []work.LeaseHolder{{Replica: "a", Life: "1"}, {Replica: "b", Life: "2"}, {Replica: "a", Life: "2"}} {
		if len(deliveries) > 0 {
			t.Error("it was handed back by somebody else")
		}
		if err := b.Leases.HandBack(wait.Context(t), h, forge.StepImplement); err != nil {
			t.Fatal(err)
		}
	}
	if n := wait.For(t, deliveries); n != 2 {
		t.Errorf("delivery %d", n)
	}
	// Another replica that gets it does not wait for the lease's end.
	if got, err := b.Leases.AtWork(t.Context(), key.Project); len(got) > 0 || err != nil {
		t.Errorf("the lease is not free: %v, %v", got, err)
	}
	// What a worker that stops gives back does not come to it again.
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := len(deliveries); n > 0 {
		t.Errorf("%d commands are begun while the worker stops", n)
	}
}

// Who works on what is known from the leases.
func TestAtWork(t *testing.T) {
	b := bustest.Start(t)
	l := acquire(t, b, "a", "1")
	got, err := b.Leases.AtWork(t.Context(), key.Project)
	if diff := cmp.Diff(map[forge.IntentID]forge.Step{key.Intent: forge.StepImplement}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := b.Leases.AtWork(t.Context(), "bank"); len(got) > 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	l.Release(t.Context())
	if got, err := b.Leases.AtWork(t.Context(), key.Project); len(got) > 0 || err != nil {
		t.Errorf("a lease that was released: %v, %v", got, err)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
