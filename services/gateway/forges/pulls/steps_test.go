package pulls_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
)

// TestSteps: both steps answer a snapshot, or a failure by which the rules know
// whether to come again, and when, or whom to ask.
func TestSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handlers := pulls.Handlers([]*pulls.Keeper{w.keeper()})
	do := func(ctx context.Context, i int, in *forge.PullInput, project forge.ProjectID) forge.Result {
		t.Helper()
		cmd := forge.Command{To: forge.Key{Project: project, Intent: w.to.Intent}, Attempt: attempt, Input: in}
		cmd.Attempt.Step = handlers[i].Step
		if !cmd.HasInput() || !handlers[i].Lease {
			t.Fatalf("the handler of %s", handlers[i].Step)
		}
		return handlers[i].Do(ctx, cmd, func(forge.Progress) {})
	}
	open, merge := 0, 1
	fails := func(r forge.Result, reason forge.FailureReason, message string) {
		t.Helper()
		if f := r.Failure(); f == nil || f.Reason != reason || !strings.Contains(f.Message, message) {
			t.Errorf("%+v, want %s: %s", r.Output, reason, message)
		}
	}
	ctx := wait.Context(t)
	fails(do(ctx, open, w.in, "other"), forge.FailConfig, "has a repository for project other")
	fails(do(ctx, merge, w.in, "shop"), forge.FailConfig, "there is no pull request")
	bad := *w.in
	bad.Branch = "../x"
	fails(do(ctx, open, &bad, "shop"), forge.FailConfig, "branch")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	fails(do(ended, open, w.in, "shop"), forge.FailInterrupted, "")
	for _, test := range []struct {
		fault  forgetest.Fault
		reason forge.FailureReason
		until  bool
	}{
		{forgetest.Fault{Status: http.StatusForbidden}, forge.FailAuth, false},
		{forgetest.Fault{Status: http.StatusUnprocessableEntity, Message: "no"}, forge.FailConfig, false},
		{forgetest.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}}}, forge.FailOrigin, true},
		{forgetest.Fault{Status: http.StatusBadGateway}, forge.FailOrigin, true},
		{forgetest.Fault{Status: http.StatusFound}, forge.FailOrigin, false},
	} {
		test.fault.By = "bot"
		w.fake.Script(test.fault)
		r := do(ctx, open, w.in, "shop")
		fails(r, test.reason, "")
		if f := r.Failure(); f.Until.IsZero() == test.until || test.until && f.Until.Location() != time.UTC {
			t.Errorf("%+v: %+v", test.fault, f)
		}
	}
	if p := forge.As[*forge.PullRequest](do(ctx, open, w.in, "shop").Output); p == nil || p.Number != 1 || p.State != forge.PullOpen {
		t.Errorf("opened is %+v", p)
	}
	w.ready()
	if p := forge.As[*forge.PullRequest](do(ctx, merge, w.in, "shop").Output); p == nil || p.State != forge.PullMerged || p.MergeCommit != w.in.Head {
		t.Errorf("merged is %+v", p)
	}
}
