package conformance

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/config"
)

// endsByLimit has a model that hangs after a daemon was started, until a limit ends the
// call. It repeats with longer limits until the call gets as far as that.
func endsByLimit(t *testing.T, b *Backend, reason forge.FailureReason) {
	for limit := 4 * time.Second; !endsWithin(t, b, reason, limit); limit *= 3 { // a busy machine starts slowly
		if limit > 4*time.Minute {
			t.Fatal("it does not get to its second request")
		}
	}
}

// endsWithin reports whether the call ended while it waited for the model.
func endsWithin(t *testing.T, b *Backend, reason forge.FailureReason, limit time.Duration) bool {
	t.Helper()
	hangs := make(chan struct{})
	x := newScripted(t, b, agent.RoleImplement, func(r agenttest.Request) agenttest.Reply {
		// First a daemon that the end of the call has to find, then silence.
		if r.N == 0 {
			return b.Shell(daemon)(r)
		}
		if r.N == 1 {
			close(hangs)
		}
		return agenttest.Reply{Fault: agenttest.HangStart}
	})
	if reason == forge.FailTimeout {
		x.call.Limits.Wall = limit
	} else {
		x.call.Limits.Idle = limit
	}
	// The limit may end the call before its second request; then nothing is known yet.
	out, _ := x.mustFail(reason)
	x.mustLeaveNoProcess()
	if out.Session != x.call.Session.ID {
		t.Errorf("session %q", out.Session)
	}
	select {
	case <-hangs:
		// The first request was answered and is paid for; the second was not.
		if out.Usage.InputTokens != 100 || out.Usage.OutputTokens > 20 {
			t.Errorf("usage %+v", out.Usage)
		}
		return true
	default:
		return false
	}
}

// reportsFailures has prompts that a shell or a CLI could take for something else, and
// a model that receives them and refuses.
func reportsFailures(t *testing.T, b *Backend) {
	for _, tt := range []struct {
		name, prompt string
		reply        agenttest.Reply
		reason       forge.FailureReason
	}{
		{"slash 401", "/help", agenttest.Reply{
			Status: http.StatusUnauthorized, ErrorType: "authentication_error", Text: "invalid x-api-key",
		}, forge.FailAuth},
		{"hyphen 429", "--version", agenttest.Reply{
			Status: http.StatusTooManyRequests, ErrorType: "rate_limit_error", Text: "slow down",
			Header: map[string]string{"Retry-After": "3600"},
		}, forge.FailRateLimited},
		{"at 500", "@greeting.txt", agenttest.Reply{
			Status: http.StatusInternalServerError, ErrorType: "api_error", Text: "broken",
		}, forge.FailOverloaded},
		{"bang 529", "!touch planted", agenttest.Reply{Status: 529, ErrorType: "overloaded_error", Text: "busy"}, forge.FailOverloaded},
		{"dollar 404", "$(touch planted) `touch planted`", agenttest.Reply{
			Status: http.StatusNotFound, ErrorType: "not_found_error", Text: "no such model",
		}, forge.FailConfig},
		{"quotes quota", "\"'\\ \x07 {} ü", agenttest.Reply{
			Status: http.StatusTooManyRequests, ErrorType: "insufficient_quota", Text: "You exceeded your current quota, please check your plan",
		}, forge.FailQuota},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newFixture(t, b, agent.RoleReview, agenttest.Always(tt.reply))
			x.call.Prompt = tt.prompt
			out, f := x.mustFail(tt.reason)
			if out.Session != x.call.Session.ID || f.Message == "" {
				t.Errorf("session %q, %v", out.Session, f)
			}
			if out.Usage.InputTokens+out.Usage.OutputTokens != 0 {
				t.Errorf("usage %+v", out.Usage)
			}
			x.mustReceive(tt.prompt)
		})
	}
}

// mustReceive checks that the model received the prompt, and that the checkout is
// unchanged.
func (x *fixture) mustReceive(prompt string) {
	x.Helper()
	all := x.model.Requests("main")
	if len(all) == 0 {
		x.Fatal("the model was not asked")
	}
	if got := all[0].LastUser; !strings.Contains(got, strings.TrimSpace(prompt)) {
		x.Errorf("the model got %d bytes: %.300q", len(got), got)
	}
	if s := git(x, x.call.Dir, "status", "--porcelain"); s != "" {
		x.Errorf("the checkout was changed: %s", s)
	}
}

// floodsOutput has a reply that exceeds the limit of output, and a large prompt.
func floodsOutput(t *testing.T, b *Backend) {
	var text strings.Builder
	for i := range 300_000 {
		fmt.Fprint(&text, i, " ")
	}
	x := newFixture(t, b, agent.RoleReview, agenttest.Say(text.String()))
	// The reply is larger than this, and the prompt is larger than a pipe's buffer.
	x.call.Limits.OutputBytes = 1 << 20
	x.call.Prompt = strings.Repeat("0123456789abcde\n", 200<<10/16)
	x.mustFail(forge.FailOutputLimit)
	x.mustReceive(x.call.Prompt)
}

// exceedsBudget has a model whose every request is expensive.
func exceedsBudget(t *testing.T, b *Backend) {
	x := newScripted(t, b, agent.RoleImplement, func(r agenttest.Request) agenttest.Reply {
		reply := b.Shell(fmt.Sprint("echo ", r.N))(r)
		reply.Usage = agenttest.Usage{Input: 30_000, Output: 9000}
		return reply
	})
	x.call.Limits.BudgetUSD = 0.5
	out, _ := x.mustFail(forge.FailBudget)
	// A call is stopped after it spent its budget, not before.
	if out.Usage.CostUSD < 0.5 {
		t.Errorf("usage %+v", out.Usage)
	}
}

// exceedsTurns has a model that never stops using tools.
func exceedsTurns(t *testing.T, b *Backend) {
	// A CLI may notice the limit a little late, but not by much. On a slow machine
	// it may be asked more often until it is stopped, so the model does not answer
	// the last of these: a limit that is not noticed by then is not held.
	const late = 8
	x := newScripted(t, b, agent.RoleImplement, func(r agenttest.Request) agenttest.Reply {
		if r.N >= late {
			return agenttest.Reply{Fault: agenttest.HangStart}
		}
		return b.Shell(fmt.Sprint("echo ", r.N))(r)
	})
	x.call.Limits.MaxTurns = 4
	x.mustFail(forge.FailMaxTurns)
}

// thinksAsTold has calls with each level of effort. A back end passes all of them on, and never
// sends one that it was not given as if it were the call's; or it can be told none, and
// config.TakesEffort says so.
func thinksAsTold(t *testing.T, b *Backend) {
	for _, level := range []config.Level{config.LevelLow, config.LevelMedium, config.LevelHigh, config.LevelXHigh, config.LevelMax} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			x := newFixture(t, b, agent.RoleReview, b.Answer(approval))
			x.call.Effort = level
			x.mustRun()
			told := strings.Contains(string(x.last().Body), fmt.Sprintf("%q:%q", "effort", level))
			if takes := config.TakesEffort(x.agent.Name()); told != takes {
				t.Errorf("told: %v, taken: %v: %.3000s", told, takes, x.last().Body)
			}
		})
	}
}

// refusesEmptyPrompt has a blank prompt.
func refusesEmptyPrompt(t *testing.T, b *Backend) {
	x := newFixture(t, b, agent.RoleReview, b.Answer(approval))
	x.call.Prompt = " \n"
	x.mustFail(forge.FailConfig)
}

// missesCLI has executables that do not exist.
func missesCLI(t *testing.T, b *Backend) {
	x := newFixture(t, b, agent.RoleReview, b.Answer(approval))
	// Neither a path nor a name that does not exist.
	for _, path := range []string{filepath.Join(t.TempDir(), "gone"), "no-such-program"} {
		x.agent = b.New(t, path, nil)
		x.mustFail(forge.FailMissingCLI)
	}
}
