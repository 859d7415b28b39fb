package work_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// leaseFor takes the lease of an attempt of a task.
func leaseFor(t *testing.T, b *bus.Bus, task forge.TaskID, number, claim int, h work.LeaseHolder) *work.Lease {
	t.Helper()
	job := leaseJob()
	job.Command.Attempt.Task, job.Command.Attempt.Number, job.Command.Attempt.Claim = task, number, claim
	l, err := b.Leases.Acquire(wait.Context(t), job, h)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestUnasked: who is at work on the same step may still take an attempt, unless it has said
// that it cannot, or serves other projects.
func TestUnasked(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	unasked := func(l *work.Lease) forge.ReplicaID {
		t.Helper()
		replica, err := l.Unasked(wait.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		return replica
	}
	sick := work.LeaseHolder{Replica: "sick", Group: "large", Life: "1"}
	first := leaseFor(t, b, "fix-001", 1, 1, sick)
	leaseFor(t, b, "fix-002", 1, 1, sick)
	leaseFor(t, b, "fix-003", 1, 1, work.LeaseHolder{Replica: "other", Group: subjects.Group("small"), Life: "1"})
	if got := unasked(first); got != "" {
		t.Errorf("%s may take it, which is itself, or serves other projects", got)
	}
	busy := work.LeaseHolder{Replica: "busy", Group: "large", Life: "1"}
	own := leaseFor(t, b, "fix-004", 1, 1, busy)
	if got := unasked(first); got != "busy" {
		t.Errorf("%q may take it, and busy was not asked", got)
	}
	first.Unable()
	first.Release(wait.Context(t))
	asked := leaseFor(t, b, "fix-001", 1, 1, busy)
	asked.Unable()
	asked.Release(wait.Context(t))
	again := leaseFor(t, b, "fix-001", 1, 1, sick)
	if got := unasked(again); got != "" {
		t.Errorf("%s may take it, and has said that it cannot", got)
	}
	own.Release(wait.Context(t))
	leaseFor(t, b, "fix-004", 1, 1, work.LeaseHolder{Replica: "busy", Group: "large", Life: "2"})
	if got := unasked(again); got != "busy" {
		t.Errorf("%q may take it, and busy was not asked since it started again", got)
	}
	again.Release(wait.Context(t))
	leaseFor(t, b, "fix-004", 1, 1, work.LeaseHolder{Replica: "busy", Group: "large", Life: "3"})
	next := leaseFor(t, b, "fix-001", 1, 2, sick)
	if got := unasked(next); got != "busy" {
		t.Errorf("%q may take it, and what was said of another claim does not count", got)
	}
}

// TestNoteKilled: whoever carries out an attempt next knows who was killed during it, each
// once, whichever claim it is, and however the lease was given back; not whoever has the next one.
func TestNoteKilled(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	attempt := leaseJob().Command.Attempt
	note := func(h work.LeaseHolder, names ...string) error {
		return b.Leases.NoteKilled(wait.Context(t), key, attempt, h, names...)
	}
	killed := func(l *work.Lease, want ...string) {
		t.Helper()
		if got := l.Killed(); !slices.Equal(got, want) {
			t.Errorf("killed were %q, want %q", got, want)
		}
	}
	old := leaseFor(t, b, attempt.Task, attempt.Number, 1, work.LeaseHolder{Replica: "a", Life: "1"})
	killed(old)
	for range 2 { // as by a process that was killed while it said so
		if err := note(work.LeaseHolder{Replica: "a", Life: "2"}, "a 1"); err != nil {
			t.Fatal(err)
		}
	}
	if old.Renew(t.Context()) == nil {
		t.Error("a process that was taken for killed goes on")
	}
	other := leaseFor(t, b, attempt.Task, attempt.Number, 2, work.LeaseHolder{Replica: "b", Life: "1"})
	killed(other, "a 1")
	if err := note(work.LeaseHolder{Replica: "a", Life: "2"}, "a 1", "a 2"); !errors.Is(err, work.ErrLeaseTaken) {
		t.Errorf("it is noted while another replica is at it: %v", err)
	}
	if err := b.Leases.HandBack(wait.Context(t), work.LeaseHolder{Replica: "b", Life: "2"}, forge.StepImplement); err != nil {
		t.Fatal(err)
	}
	other.Release(t.Context())
	if err := note(work.LeaseHolder{Replica: "a", Life: "3"}, "a 2"); err != nil {
		t.Fatal(err)
	}
	last := leaseFor(t, b, attempt.Task, attempt.Number, 2, work.LeaseHolder{Replica: "b", Life: "2"})
	killed(last, "a 1", "a 2")
	last.Release(wait.Context(t))
	next := leaseFor(t, b, attempt.Task, attempt.Number+1, 1, work.LeaseHolder{Replica: "b", Life: "2"})
	killed(next)
	next.Release(wait.Context(t))
	many := make([]string, 1000)
	for i := range many {
		many[i] = strings.Repeat("x", i)
	}
	if err := note(work.LeaseHolder{Replica: "a", Life: "3"}, many...); err != nil {
		t.Fatal(err)
	}
	if n := len(leaseFor(t, b, attempt.Task, attempt.Number, 1, work.LeaseHolder{Replica: "c", Life: "1"}).Killed()); n == 0 || n > 100 {
		t.Errorf("a note names %d processes", n)
	}
}

// TestNotedCommandComesAtOnce: noting that a former life was killed has its command delivered
// at once, and not once the server finds out that nobody is at it.
func TestNotedCommandComesAtOnce(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	dispatch(t, b, leaseJob().Command)
	deliveries := make(chan int, 100)
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
	if n := wait.For(t, deliveries); n != 1 {
		t.Errorf("delivery %d", n)
	}
	began := time.Now()
	if err := b.Leases.NoteKilled(wait.Context(t), key, leaseJob().Command.Attempt, work.LeaseHolder{Replica: "a", Life: "2"}, "a 1"); err != nil {
		t.Fatal(err)
	}
	if n := wait.For(t, deliveries); n != 2 || time.Since(began) > 5*time.Second {
		t.Errorf("delivery %d after %s", n, time.Since(began))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
