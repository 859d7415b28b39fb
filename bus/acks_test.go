package bus_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestAcknowledgementOverALease has a person send a request whose acknowledgement
// goes over a worker's lease, where the person may not publish. That is what is left
// of replies that the server sends wherever its asker says: the holder stops, and
// has the lease again at once. Nothing else is known by it, and nothing is decided.
func TestAcknowledgementOverALease(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	seen := decider(ctx, t, connectAs(ctx, t, s, "runner", "RUNNER"))
	worker := connectAs(ctx, t, s, "implementer", "IMPLEMENTER")
	job := &work.Job{Command: forge.Command{
		To: key, Attempt: forge.Attempt{Task: "fix-login-001", Step: forge.StepImplement, Number: 1, Claim: 1}, Input: &forge.ImplementInput{},
	}}
	holder := work.LeaseHolder{Replica: "implementer-0", Life: "1"}
	lease, err := worker.Leases.Acquire(ctx, job, holder)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := subjects.Lease(key, job.Command.Attempt.Task, forge.StepImplement)
	if err != nil {
		t.Fatal(err)
	}
	ada, refused := as(t, s, "ada")
	deniedPublish(ctx, t, ada, refused, subject)
	lost := make(chan error, 1)
	go func() { lost <- lease.Keep(ctx, 10*time.Millisecond) }()
	if err := ada.PublishRequest("forge.intent.shop.by.ada.approve", subject, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := wait.For(t, lost); !errors.Is(err, work.ErrLeaseLost) {
		t.Errorf("the holder ends with %v", err)
	}
	again, err := worker.Leases.Acquire(ctx, job, holder)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Held(); err != nil {
		t.Error(err)
	}
	if len(seen) > 0 {
		t.Errorf("a runner was given %+v", <-seen)
	}
}
