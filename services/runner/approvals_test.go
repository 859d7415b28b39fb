package runner_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// decideUntil runs a runner without workers until stop is called.
func decideUntil(t *testing.T, b *bus.Bus) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }})
	}()
	<-ready
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Three people have to approve. One does so with a runner that then ends; the others at once,
// on two more runners, and each of them twice. It counts what the journal has: everyone once.
func TestApprovalsAddUpAcrossRunners(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	first := decideUntil(t, b)
	t.Cleanup(first)
	policy := forge.DefaultPolicy()
	policy.Approvals = forge.Approvals{Count: 3, NotRequester: true}
	work := func(c forge.Command) forge.Result {
		r := succeed(c)
		if out := forge.As[*forge.Analysis](r.Output); out != nil {
			out.Risk, out.Policy = forge.RiskMed, &policy
		}
		return r
	}
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for _, step := range forge.Steps() {
		workers.Go(func() {
			if err := answerStep(ctx, b, step, 1, work); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { cancel(); workers.Wait() })
	ask := submission("one")
	ask.Actor = "ann"
	if ruling, err := b.Submissions.Ask(t.Context(), ask); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	await(t, b, forge.StatusProposed, "one")
	summary := func() forge.Summary {
		s, err := b.Journal.Summary(t.Context(), forge.Key{Project: project, Intent: "one"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	plan := summary().Plan
	approve := func(by, id string) forge.Decision {
		ruling, err := b.Submissions.Ask(t.Context(), forge.Event{
			ID: id, To: forge.Key{Project: project, Intent: "one"}, Actor: by, Message: &forge.Approve{Plan: plan},
		})
		if err != nil {
			t.Error(err)
		}
		return ruling.Decision
	}
	if got := approve("ann", "0"); got != forge.Refused {
		t.Errorf("the requester approves: %s", got)
	}
	if got := approve("bob", "1"); got != forge.Applied {
		t.Errorf("bob approves: %s", got)
	}
	first()
	t.Cleanup(decideUntil(t, b))
	t.Cleanup(decideUntil(t, b))
	if s := summary(); len(s.Approval.By) != 1 || s.Approval.Needed != 3 || s.Waiting != forge.WaitingApproval {
		t.Errorf("after a restart: %+v", s.Approval)
	}
	if got := approve("bob", "2"); got != forge.Ignored {
		t.Errorf("bob approves once more: %s", got)
	}
	applied := make(chan forge.Decision, 4)
	var people sync.WaitGroup
	for id, by := range map[string]string{"3": "dee", "4": "dee", "5": "eve", "6": "eve"} {
		people.Go(func() { applied <- approve(by, id) })
	}
	people.Wait()
	close(applied)
	n := 0
	for d := range applied {
		if d == forge.Applied {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d of 4 approvals by 2 people were applied; want 2", n)
	}
	await(t, b, forge.StatusDone, "one")
	if s := summary(); len(s.Approval.By) != 3 {
		t.Errorf("approved by %v; want bob, dee and eve", s.Approval.By)
	}
}
