package conformance

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

// ends has a model that says nothing more after a daemon was started, and ends the call.
func ends(t *testing.T, b *Backend, reason forge.FailureReason) {
	for limit := 2 * time.Second; !endsWithin(t, b, reason, limit); limit *= 2 { // a busy machine starts slowly
		if limit > time.Minute {
			t.Fatal("it does not get to its second request")
		}
	}
}

// endsWithin reports whether the call ended while it waited for the model.
func endsWithin(t *testing.T, b *Backend, reason forge.FailureReason, limit time.Duration) bool {
	hangs := make(chan struct{})
	x := script(t, b, agent.RoleImplement, func(r agenttest.Request) agenttest.Reply {
		if r.N == 0 {
			return b.Shell(daemon)(r)
		}
		if r.N == 1 {
			close(hangs)
		}
		return agenttest.Reply{Fault: agenttest.HangStart}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	switch reason {
	case forge.FailTimeout:
		x.call.Limits.Wall = limit
	case forge.FailIdle:
		x.call.Limits.Idle = limit
	default:
		go func() {
			<-hangs
			cancel()
		}()
	}
	out, err := x.agent.Run(ctx, x.call, nil)
	x.mustBeGone()
	if f := agent.AsFailure(err); f == nil || f.Reason != reason {
		t.Fatalf("got %v, want %s", err, reason)
	}
	if out.Session != x.call.Session.ID {
		t.Errorf("session %q", out.Session)
	}
	select {
	case <-hangs:
		if out.Usage.InputTokens != 100 || out.Usage.OutputTokens > 20 {
			t.Errorf("usage %+v", out.Usage)
		}
		return true
	default:
		return false
	}
}

func failures(t *testing.T, b *Backend) {
	for _, tt := range []struct {
		name   string
		reply  agenttest.Reply
		reason forge.FailureReason
	}{
		{"401", agenttest.Reply{Status: http.StatusUnauthorized, ErrorType: "authentication_error", Text: "invalid x-api-key"}, forge.FailAuth},
		{"429", agenttest.Reply{
			Status: http.StatusTooManyRequests, ErrorType: "rate_limit_error", Text: "slow down",
			Header: map[string]string{"Retry-After": "3600"},
		}, forge.FailRateLimited},
		{"500", agenttest.Reply{Status: http.StatusInternalServerError, ErrorType: "api_error", Text: "broken"}, forge.FailOverloaded},
		{"529", agenttest.Reply{Status: 529, ErrorType: "overloaded_error", Text: "busy"}, forge.FailOverloaded},
		{"404", agenttest.Reply{Status: http.StatusNotFound, ErrorType: "not_found_error", Text: "no such model"}, forge.FailConfig},
		{"quota", agenttest.Reply{
			Status: http.StatusTooManyRequests, ErrorType: "insufficient_quota", Text: "You exceeded your current quota, please check your plan",
		}, forge.FailQuota},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := start(t, b, agent.RoleReview, agenttest.Always(tt.reply))
			out, f := x.mustFail(tt.reason)
			if out.Session != x.call.Session.ID || f.Message == "" {
				t.Errorf("session %q, %v", out.Session, f)
			}
			if out.Usage.InputTokens+out.Usage.OutputTokens != 0 {
				t.Errorf("usage %+v", out.Usage)
			}
		})
	}
}

func floods(t *testing.T, b *Backend) {
	var text strings.Builder
	for i := range 300_000 {
		fmt.Fprint(&text, i, " ")
	}
	x := start(t, b, agent.RoleReview, agenttest.Say(text.String()))
	x.call.Limits.OutputBytes = 1 << 20
	x.mustFail(forge.FailOutputLimit)
}

func spends(t *testing.T, b *Backend) {
	x := script(t, b, agent.RoleImplement, func(r agenttest.Request) agenttest.Reply {
		reply := b.Shell(fmt.Sprint("echo ", r.N))(r)
		reply.Usage = agenttest.Usage{Input: 30_000, Output: 9000}
		return reply
	})
	x.call.Limits.BudgetUSD = 0.5
	out, _ := x.mustFail(forge.FailBudget)
	if out.Usage.CostUSD < 0.5 {
		t.Errorf("usage %+v", out.Usage)
	}
}

func turns(t *testing.T, b *Backend) {
	x := script(t, b, agent.RoleImplement, func(r agenttest.Request) agenttest.Reply { return b.Shell(fmt.Sprint("echo ", r.N))(r) })
	x.call.Limits.MaxTurns = 4
	x.mustFail(forge.FailMaxTurns)
	if n := len(x.model.Requests("main")); n > 8 {
		t.Errorf("the model was asked %d times", n)
	}
}

func prompts(t *testing.T, b *Backend) {
	for name, text := range map[string]string{
		"slash": "/help", "hyphen": "--version", "at": "@greeting.txt", "bang": "!touch planted", "dollar": "$(touch planted) `touch planted`",
		"quotes": "\"'\\ \x07 {} ü", "long": strings.Repeat("0123456789abcde\n", 200<<10/16),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := start(t, b, agent.RoleReview, b.Answer(approval))
			x.call.Prompt = text
			x.mustRun()
			got := x.last().LastUser
			if !strings.Contains(got, strings.TrimSpace(text)) {
				t.Errorf("the model got %d bytes: %.300q", len(got), got)
			}
			if s := git(t, x.call.Dir, "status", "--porcelain"); s != "" {
				t.Errorf("the checkout was changed: %s", s)
			}
		})
	}
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		x := start(t, b, agent.RoleReview, b.Answer(approval))
		x.call.Prompt = " \n"
		x.mustFail(forge.FailConfig)
	})
}

func missing(t *testing.T, b *Backend) {
	x := start(t, b, agent.RoleReview, b.Answer(approval))
	for _, path := range []string{filepath.Join(t.TempDir(), "gone"), "no-such-program"} {
		x.agent = b.New(t, path, nil)
		x.mustFail(forge.FailMissingCLI)
	}
}
