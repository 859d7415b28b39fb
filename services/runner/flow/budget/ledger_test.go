package budget_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/budget"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

func attempt(n int) forge.Attempt {
	return forge.Attempt{Task: "t", Step: forge.StepImplement, Number: n, Claim: 1}
}

// A step of a test: what is done, and what the intents are told.
type step struct {
	about string
	do    func(l *budget.Ledger, out *outbox.Messages) forge.Decision
	want  []string
}

func reserve(id forge.IntentID, number int, usd float64, underWay bool) func(*budget.Ledger, *outbox.Messages) forge.Decision {
	return func(l *budget.Ledger, out *outbox.Messages) forge.Decision {
		d, _ := l.Reserve(out, budget.Call{
			Intent: id, Number: number, Attempt: attempt(number), Limits: forge.Budget{ProjectUSD: 10}, USD: usd, UnderWay: underWay,
		}, time.Unix(0, 0))
		return d
	}
}

func commit(id forge.IntentID, number int, spent float64, open ...forge.Attempt) func(*budget.Ledger, *outbox.Messages) forge.Decision {
	return func(l *budget.Ledger, out *outbox.Messages) forge.Decision {
		d, _ := l.Commit(out, id, &forge.CommitBudget{Number: number, SpentUSD: spent, Open: open}, time.Unix(0, 0))
		return d
	}
}

// What is reserved, committed and released, one step after the other. Before every step
// the ledger is written out and read back.
func TestLedger(t *testing.T) {
	l := &budget.Ledger{}
	for _, id := range []forge.IntentID{"a", "b"} {
		l.Open(&outbox.Messages{}, id, "", time.Unix(0, 0))
	}
	for _, s := range []step{
		{"there is room", reserve("a", 1, 6, false), []string{"applied", "a #1 $6.00"}},
		{"the same once more is answered once more", reserve("a", 1, 6, false), []string{"ignored", "a #1 $6.00"}},
		{"something may come back: wait", reserve("b", 1, 6, false), []string{"applied"}},
		{"work under way is answered before work that begins", reserve("b", 2, 5, true), []string{"applied"}},
		{"nothing is released while the attempt is open", commit("a", 2, 2, attempt(1)), []string{"applied"}},
		{"the call ended and cost less: the first that waits has room", commit("a", 3, 3), []string{"applied", "b #2 $5.00"}},
		{"an older total changes nothing", commit("a", 2, 1), []string{"ignored"}},
		{"what is left is granted when nothing more can come back", commit("b", 3, 6, attempt(1)), []string{"applied", "b #1 $1.00"}},
		{"who was answered and settled asks in vain", reserve("b", 2, 5, true), []string{"ignored"}},
		{"the budget is used up", func(l *budget.Ledger, out *outbox.Messages) forge.Decision {
			l.Close(out, "b", 10, nil, time.Unix(0, 0))
			return reserve("a", 4, 1, false)(l, out)
		}, []string{"applied", "a #4 refused"}},
		{"an intent that never began has no account", commit("c", 1, 1), []string{"ignored"}},
	} {
		t.Run(s.about, func(t *testing.T) {
			l = reload(t, l)
			var out outbox.Messages
			got := []string{string(s.do(l, &out))}
			for _, m := range out {
				f := forge.As[*forge.BudgetReserved](m.Message)
				text := fmt.Sprintf("%s #%d $%.2f", m.Intent, f.Attempt.Number, f.USD)
				if f.USD == 0 {
					text = fmt.Sprintf("%s #%d refused", m.Intent, f.Attempt.Number)
				}
				got = append(got, text)
			}
			if !slices.Equal(got, s.want) {
				t.Errorf("got %q, want %q", got, s.want)
			}
		})
	}
}

// The day's budget is there again on the next day, UTC.
func TestDay(t *testing.T) {
	l := &budget.Ledger{Limits: forge.Budget{DayUSD: 8}}
	night := time.Date(2030, 1, 1, 23, 59, 0, 0, time.UTC)
	l.Open(&outbox.Messages{}, "a", "", night)
	l.Close(&outbox.Messages{}, "a", 8, nil, night)
	if _, refusal, _, wait := l.ReserveReflection("a", night); refusal == "" || wait {
		t.Errorf("the budget is not used up: %q, %t", refusal, wait)
	}
	usd, refusal, _, wait := l.ReserveReflection("a", night.Add(2*time.Minute))
	if usd != 2 || refusal != "" || wait {
		t.Errorf("$%.2f %q %t, want a quarter of the day's budget", usd, refusal, wait)
	}
	l.ReleaseReflection(&outbox.Messages{}, night)
	if l.ReflectionUSD != 0 {
		t.Errorf("$%.2f are still reserved", l.ReflectionUSD)
	}
}

func reload(t *testing.T, l *budget.Ledger) *budget.Ledger {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	again := &budget.Ledger{}
	if err := json.Unmarshal(data, again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, again); diff != "" {
		t.Errorf("the ledger that was read back (-written +read):\n%s", diff)
	}
	return again
}
