package spending_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/spending"
)

const (
	project = forge.ProjectID("shop")
	commit  = "0123456789012345678901234567890123456789"
)

// till is an agent that takes money for everything, and knows how much it took.
type till struct {
	mu    sync.Mutex
	taken forge.Usage
	by    map[string]int64 // input tokens
	calls int
}

// serve answers a command: some attempts fail, some reviews reject.
func (s *till) serve(_ context.Context, c forge.Command, _ service.Progress) forge.Result {
	r := answer(&c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Attempt.Step == forge.StepRebase || c.Attempt.Step == forge.StepMerge {
		return r
	}
	n := rand.Int64N(1000)
	r.Usage = forge.Usage{
		InputTokens: 1 + n, OutputTokens: 2 * n, CacheReadTokens: 3 * n, CacheWriteTokens: 4 * n, CostUSD: float64(n) / 1024, Turns: 2, Calls: 1,
	}
	r.Agent, r.Model, r.Session = "claude", []string{"m1", "m2"}[rand.IntN(2)], "s"
	s.calls++
	switch review := forge.As[*forge.Review](r.Output); {
	case review != nil && s.calls%5 == 0:
		review.Verdict, review.Issues = forge.VerdictRejected, []string{"no"}
	case s.calls%7 == 0 && forge.As[*forge.Analysis](r.Output) == nil && forge.As[*forge.Reflection](r.Output) == nil:
		r.Output = &forge.Failure{Reason: forge.FailCrashed, Message: "exit status 1"}
	}
	s.taken = s.taken.Add(r.Usage)
	for _, key := range []string{"step/" + string(c.Attempt.Step), "model/" + r.Model, "intent/" + string(c.To.Intent)} {
		s.by[key] += r.Usage.InputTokens
	}
	return r
}

func answer(c *forge.Command) forge.Result {
	var r forge.Result
	switch c.Attempt.Step {
	case forge.StepAnalyze:
		policy := forge.DefaultPolicy()
		policy.RetryBackoff, policy.MaxAgentRetries = time.Millisecond, 5
		policy.Budget = forge.Budget{ProjectUSD: 100_000, DayUSD: 50_000, IntentUSD: 10_000}
		r.Output = &forge.Analysis{
			Risk: forge.RiskLow, Tasks: []forge.TaskPlan{{Name: "a", Title: "a"}, {Name: "b", Title: "b"}}, Policy: &policy, Base: commit,
		}
	case forge.StepImplement:
		r.Output = &forge.Implementation{Base: commit, Head: commit, Commits: 1, Files: []string{string(c.Task.ID)}}
	case forge.StepRebase:
		r.Output = &forge.Rebase{Base: commit, Head: commit, Tree: commit, PatchID: commit, Files: []string{string(c.Task.ID)}}
	case forge.StepReview:
		r.Output = &forge.Review{TaskID: c.Task.ID, Head: c.Task.Head, Verdict: forge.VerdictApproved}
	case forge.StepMerge:
		r.Output = &forge.MergeResult{Outcome: forge.MergeDone, Commit: commit, Parent: commit, Tree: commit}
	case forge.StepReflect:
		r.Output = &forge.Reflection{}
	default: // no intent here takes another step
	}
	return r
}

// TestTotals checks that what the journals add up to is what was served, to the token,
// whatever failed, was rejected or done again.
func TestTotals(t *testing.T) {
	b := bustest.Start(t)
	s := &till{by: map[string]int64{}}
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	t.Cleanup(func() { stop(); parts.Wait() })
	parts.Go(func() { _ = runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler)}) })
	w := &service.Worker{Bus: b, Replica: "a", Log: slog.New(slog.DiscardHandler), Parallel: 4, Grace: time.Millisecond}
	for _, step := range forge.Steps() {
		w.Handlers = append(w.Handlers, service.Handler{Step: step, Do: s.serve})
	}
	parts.Go(func() { _ = w.Run(ctx) })
	const intents = 8
	for i := range intents {
		id := forge.IntentID(fmt.Sprintf("intent-%d", i))
		ruling, err := b.Submissions.Ask(ctx, forge.Event{ID: "e-" + string(id), To: forge.Key{Project: project, Intent: id}, Message: &forge.Submit{
			Intent: forge.Intent{ID: id, Project: project, Settings: forge.Settings{Title: "Title of " + string(id), Body: "do it"}, Source: forge.SourceHuman},
		}})
		if err != nil || ruling.Decision != forge.Applied {
			t.Fatal(ruling, err)
		}
	}
	awaitDecisions(t, b, intents)
	before := time.Now()

	ask := runner.NewSpending(b.Journal).Costs
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, by := range document.CostGroups() {
		costs, err := ask(t.Context(), project, document.CostsRequest{By: by})
		if err != nil {
			t.Fatal(err)
		}
		var sum forge.Usage
		for _, row := range costs.Rows {
			sum = sum.Add(usage(&row))
			if want, ok := s.by[string(by)+"/"+row.Key]; ok && row.InputTokens != want || by == document.CostsByStep && !ok {
				t.Errorf("%s %s: %d input tokens, want %d", by, row.Key, row.InputTokens, want)
			}
			if by == document.CostsByIntent && (row.Title != "Title of "+row.Key || row.LeftUSD == nil || *row.LeftUSD != 10_000-row.CostUSD) {
				t.Errorf("%+v", row)
			}
		}
		if diff := cmp.Diff(s.taken, sum); diff != "" { // costs are multiples of 1/1024: their sums are exact
			t.Errorf("by %s: %s", by, diff)
		}
		if got := usage(&costs.Total); got != s.taken {
			t.Errorf("by %s: the total is %+v", by, got)
		}
		want := []document.CostBudget{
			{Project: project, Of: "project", BudgetUSD: 100_000, SpentUSD: s.taken.CostUSD, LeftUSD: 100_000 - s.taken.CostUSD},
			{Project: project, Of: "day", BudgetUSD: 50_000, SpentUSD: s.taken.CostUSD, LeftUSD: 50_000 - s.taken.CostUSD},
		}
		if diff := cmp.Diff(want, costs.Budgets); diff != "" {
			t.Error(diff)
		}
		if by == document.CostsByTask && len(costs.Rows) != 3*intents {
			t.Errorf("there are rows of %d tasks", len(costs.Rows))
		}
	}
	for _, none := range []document.CostsRequest{{Until: before.Add(-time.Hour)}, {Since: before}} {
		if costs, err := ask(t.Context(), project, none); err != nil || len(costs.Rows) != 0 || costs.By != document.CostsByDay {
			t.Errorf("%+v: %+v, %v", none, costs, err)
		}
	}
}

func usage(r *document.CostRow) forge.Usage {
	return forge.Usage{
		InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, CacheReadTokens: r.CacheReadTokens, CacheWriteTokens: r.CacheWriteTokens,
		CostUSD: r.CostUSD, Turns: r.Turns, Calls: r.Calls,
	}
}

// awaitDecisions waits until nothing goes on with any intent, and each was reflected upon.
func awaitDecisions(t *testing.T, b *bus.Bus, intents int) {
	t.Helper()
	ctx, moved := wait.WhileMoving(t)
	done := errors.New("done")
	settled, reflected := map[forge.IntentID]bool{}, map[forge.IntentID]bool{}
	err := b.Journal.Follow(ctx, project, 0, journal.Follower{Record: func(key forge.Key, _ uint64, rec forge.Record) error {
		moved()
		if !key.IsProject() {
			settled[key.Intent] = rec.Summary.Idle && rec.Summary.Status.Ended()
		}
		for i := range rec.Events {
			if forge.As[*forge.RunReflected](rec.Events[i].Message) != nil {
				reflected[key.Intent] = true
			}
		}
		n := 0
		for _, is := range settled {
			if is {
				n++
			}
		}
		if n == intents && len(reflected) == intents {
			return done
		}
		return nil
	}})
	if !errors.Is(err, done) {
		t.Fatalf("the intents do not settle: %v, %v", settled, err)
	}
}

// ended returns the record of an attempt that ended, after which the rules have counted so much.
func ended(day int, model string, used, sum float64) *forge.Record {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, day)
	return &forge.Record{
		Events: []forge.Event{{At: at, Message: &forge.Result{
			Attempt: forge.Attempt{Step: forge.StepReview, Number: 1}, Agent: "claude", Model: model, Usage: forge.Usage{CostUSD: used, InputTokens: int64(8 * used)},
		}}},
		Summary: forge.Summary{UpdatedAt: at, Usage: forge.Usage{CostUSD: sum, InputTokens: int64(8 * sum)}},
	}
}

// TestLedgerForgets adds an attempt a day to a ledger that keeps eight days: it
// keeps at least those, not much more, and says since when it has all of them.
func TestLedgerForgets(t *testing.T) {
	l := spending.Ledger{Keep: 8 * 24 * time.Hour}
	key := forge.Key{Project: project, Intent: "long"}
	for day := range 100 {
		l.Add(key, ended(day, "m1", 1, float64(day+1)))
		c := l.Costs(document.CostsRequest{Since: l.From()}, nil, time.Time{})
		if n := len(c.Rows); n < min(day+1, 8) || n > 10 || c.Total.CostUSD != float64(n) {
			t.Fatalf("after %d days there are %d, of %g dollars", day+1, n, c.Total.CostUSD)
		}
		if day < 9 != l.From().IsZero() {
			t.Errorf("after %d days all is known since %s", day+1, l.From())
		}
	}
}

// TestLedgerCountsAsTheRules has a record of a result that the rules did not
// count: it is in no sum. A worker can report one as often as it likes.
func TestLedgerCountsAsTheRules(t *testing.T) {
	var l spending.Ledger
	key := forge.Key{Project: project, Intent: "twice"}
	l.Add(key, ended(0, "m1", 2, 2))
	l.Add(key, ended(0, "m2", 2, 2)) // not counted
	twice := ended(0, "m3", 1, 3)    // one of two is counted
	twice.Events = append(twice.Events, twice.Events[0])
	l.Add(key, twice)
	c := l.Costs(document.CostsRequest{By: document.CostsByModel}, nil, time.Time{})
	if c.Total.CostUSD != 3 || c.Total.Attempts != 2 || len(c.Rows) != 2 || c.Rows[0].Key != "m1" || c.Rows[1].Key != "m3" {
		t.Errorf("%+v", c)
	}
}

// TestCostsAreBounded has more groups than an answer has room for: the others are added up.
func TestCostsAreBounded(t *testing.T) {
	for _, by := range []document.CostGroup{document.CostsByDay, document.CostsByModel} {
		var l spending.Ledger
		sum := 0.0
		for day := range 300 {
			sum += float64(day + 1)
			l.Add(forge.Key{Project: project, Intent: "long"}, ended(day, fmt.Sprint("m", day), float64(day+1), sum))
		}
		c := l.Costs(document.CostsRequest{By: by}, nil, time.Time{})
		c.Bound()
		shown := 0.0
		for i := range c.Rows {
			shown += c.Rows[i].CostUSD
		}
		if len(c.Rows) != document.CostRowsShown || c.Others.Attempts != 100 || c.Others.CostUSD != 5050 || shown+c.Others.CostUSD != c.Total.CostUSD {
			t.Errorf("by %s: %d rows, others %+v, total %+v", by, len(c.Rows), c.Others, c.Total)
		}
	}
}
