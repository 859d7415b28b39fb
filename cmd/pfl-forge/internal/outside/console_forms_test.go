package outside

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// stuck starts an installation with a console, in which an intent comes to a halt by what its
// body says: "fails" cannot be implemented until it is run again with instructions, "dear"
// runs out of its budget until that is more than a dollar, and "waits" is worked on for ever.
func stuck(t *testing.T, console gateway.Console) (w *world, instructed *atomic.Value) {
	t.Helper()
	w = start(t, gateway.Settings{Console: console})
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{Risk: forge.RiskLow, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
	}
	w.decides(quota.Limits{})
	instructed = &atomic.Value{}
	instructed.Store("")
	w.carries(func(ctx context.Context, c *forge.Command) (forge.Output, []byte) {
		switch {
		case strings.Contains(c.Intent.Body, "dear") && c.Intent.BudgetUSD < 1:
			return &forge.Failure{Reason: forge.FailBudget, Message: "its budget is used up"}, nil
		case c.Attempt.Step != forge.StepImplement, strings.Contains(c.Intent.Body, "waits"), strings.Contains(c.Intent.Body, "dear"), c.Instructions != "":
			if c.Instructions != "" {
				instructed.Store(c.Instructions)
			}
			<-ctx.Done()
			return nil, nil
		}
		return &forge.Failure{Reason: forge.FailConfig, Message: "there is no compiler <script>" + hides}, nil
	})
	return w, instructed
}

// halts submits an intent of ada and returns its path when it waits for something.
func (w *world) halts(wish, waiting string) string {
	w.t.Helper()
	path := w.request("ada", http.MethodPost, intents, wish).header.Get("Location")
	wait.Until(w.t, "it waits: "+waiting, func() bool { return w.request("ada", http.MethodGet, path, "").body["waiting"] == waiting })
	return path
}

// TestConsoleForms: what failed is run again with the person's words, a budget is raised,
// what is paused is resumed or cancelled, each by its form on the page of the intent,
// which says what happens next; an amount that is none is refused, and nothing is done.
func TestConsoleForms(t *testing.T) {
	t.Parallel()
	w, instructed := stuck(t, gateway.Console{Key: filepath.Join(t.TempDir(), "k"), Projects: []string{"shop"}})
	ada := w.signIn("ada")
	state := func(path string) string {
		d := w.request("ada", http.MethodGet, path, "").body
		return fmt.Sprint(d["status"], " ", d["waiting"])
	}
	failed := w.halts(`{"title": "Fails", "body": "fails"}`, "failed")
	p := ada.get(consolePath(failed))
	p.wants(t, "what failed", http.StatusOK, "there is no compiler &lt;script&gt;", "Instructions, if any",
		"What failed or waits is run again, and agents get your instructions.",
		"The intent ends as rejected, for good.")
	action, retry := p.form(t, failed, "retry")
	retry.Set("text", "Use\r\nthe other compiler.")
	ada.do(http.MethodPost, action, retry).wants(t, "retry", http.StatusSeeOther)
	wait.Until(t, "its agent is told", func() bool { return instructed.Load() == "Use\nthe other compiler." })

	dear := w.halts(`{"title": "Dear", "body": "dear", "budget_usd": 0.5}`, "budget")
	p = ada.get(consolePath(dear))
	p.wants(t, "without budget", http.StatusOK, "New total in US dollars", "It continues as far as the new budget")
	action, budget := p.form(t, dear, "budget")
	for _, amount := range []string{"much", "-1", "0", "1e9", "NaN", "Inf", "$$5"} {
		budget.Set("text", amount)
		ada.do(http.MethodPost, action, budget).wants(t, amount, http.StatusBadRequest, "not an amount of US dollars. Nothing was done.")
	}
	budget.Set("text", "$40")
	ada.do(http.MethodPost, action, budget).wants(t, "budget", http.StatusSeeOther)
	wait.Until(t, "it goes on", func() bool { return state(dear) == "executing <nil>" })

	w.request("ada", http.MethodPost, dear+"/pause", "{}").wants(t, "pause", http.StatusOK)
	wait.Until(t, "it is paused", func() bool { return strings.HasSuffix(state(dear), "paused") })
	p = ada.get(consolePath(dear))
	p.wants(t, "paused", http.StatusOK, "Agents continue where they stopped", "The intent ends as cancelled, for good.")
	action, resume := p.form(t, dear, "resume")
	ada.do(http.MethodPost, action, resume).wants(t, "resume", http.StatusSeeOther)
	wait.Until(t, "it goes on", func() bool { return state(dear) == "executing <nil>" })
	w.request("ada", http.MethodPost, dear+"/pause", "{}").wants(t, "pause", http.StatusOK)
	wait.Until(t, "it is paused", func() bool { return strings.HasSuffix(state(dear), "paused") })
	action, cancel := ada.get(consolePath(dear)).form(t, dear, "cancel")
	cancel.Set("text", "Too dear.")
	ada.do(http.MethodPost, action, cancel).wants(t, "cancel", http.StatusSeeOther)
	ada.get(consolePath(dear)).wants(t, "afterwards", http.StatusOK, "cancelled", "Too dear.")
	if got := state(dear); got != "cancelled <nil>" {
		t.Errorf("it is %s", got)
	}
}
