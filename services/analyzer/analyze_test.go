package analyzer_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/analyzer"
)

const settings = `
max_review_retries: 5
timeouts: {implement: 20m, verify: 5m}
worktree_setup: [make deps, make more]
policy: {trusted_origins: [ci]}
recipes:
  rename:
    title: Rename
    risk: med
    params:
      - {name: FROM, question: 'Which identifier?', suggested: [foo, bar]}
      - {name: TO}
    run: sed -i "s/$FROM/$TO/" *.txt
  files:
    each: ls *.txt
    run: 'true'
  none:
    each: 'true'
    run: 'true'
  fails:
    each: 'exit 3'
    run: 'true'
`

func command(recipe string) forge.Command {
	return forge.Command{
		BudgetUSD: 5,
		To:        forge.Key{Project: repotest.Project, Intent: "tidy"},
		Attempt:   forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1},
		Intent:    forge.Intent{ID: "tidy", Project: repotest.Project, Settings: forge.Settings{Title: "Tidy up", Body: "Please.", Recipe: recipe}},
	}
}

func world(t *testing.T, others ...agent.Agent) (gittest.Repo, *jobs.Set, *analyzer.Analyzer) {
	t.Helper()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n", "b.txt": "b\n"})
	set := repotest.Local(t, r.Dir, others...)
	return r, set, analyzer.New(set, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

func analyze(t *testing.T, a *analyzer.Analyzer, c forge.Command) forge.Result {
	t.Helper()
	for _, h := range a.Handlers() {
		if h.Step == c.Attempt.Step {
			return h.Do(t.Context(), c, func(forge.Progress) {})
		}
	}
	t.Fatalf("nobody does %s", c.Attempt.Step)
	return forge.Result{}
}

func TestMissingParametersBecomeQuestions(t *testing.T) {
	r, _, a := world(t)
	c := command("rename")
	got := analyze(t, a, c)
	want := &forge.Analysis{
		Risk: forge.RiskMed,
		Clarifications: []forge.Clarification{
			{Question: "Which identifier?", SuggestedAnswers: []string{"foo", "bar"}, Param: "FROM"},
			{Question: "Which value for TO?", Param: "TO"},
		},
		Policy: &forge.Policy{
			Numbers: forge.Numbers{MergeParallel: 4, Settings: []forge.Setting{
				{Name: "base_branch", Value: "main", By: config.ByDefault},
				{Name: "max_review_retries", Value: "5", By: config.ByRepository},
				{Name: "policy.approvals.not_requester", Value: "true", By: config.ByDefault},
				{Name: "policy.trusted_origins", Value: "ci", By: config.ByRepository},
				{Name: "recipes", Value: "fails\nfiles\nnone\nrename", By: config.ByRepository},
				{Name: "timeouts.implement", Value: "20m", By: config.ByRepository},
				{Name: "timeouts.verify", Value: "5m", By: config.ByRepository},
				{Name: "worktree_setup", Value: "make deps\nmake more", By: config.ByRepository},
			}},
			MaxReviewRetries: 5, MaxAgentRetries: 2, RetryBackoff: time.Second, ClaimTimeout: 30 * time.Second,
			AttemptTimeout: 40 * time.Minute, TrustedOrigins: []string{"ci"}, ProtectedPaths: config.Default().Policy.ProtectedPaths,
			Approvals: forge.Approvals{Count: 1, NotRequester: true, Commit: string(r.Head("main"))},
			MaxDepth:  3, Budget: forge.Budget{IntentUSD: config.DefaultIntentUSD, DayUSD: config.DefaultDayUSD},
			Reflection:    forge.ReflectionPolicy{MaxGeneration: 2, ProposalsADay: 20, ProposalsATime: 5},
			MinConfidence: 0.7, AnalyzeBeforeApproval: "recipes",
		},
		Base: string(r.Head("main")),
	}
	if diff := cmp.Diff(want, forge.As[*forge.Analysis](got.Output)); diff != "" || got.Failure() != nil || got.Agent != "recipe" {
		t.Errorf("%+v\n%s", got, diff)
	}

	// Answers are values, as much as those that came with the intent.
	answer := "foo"
	c.Intent.With = map[string]string{"TO": "bar"}
	c.Intent.Clarifications = []forge.Clarification{{Param: "FROM", Answer: &answer}}
	got = analyze(t, a, c)
	out := forge.As[*forge.Analysis](got.Output)
	if got.Failure() != nil || len(out.Tasks) != 1 || !strings.Contains(out.Tasks[0].Plan, "FROM: foo\nTO: bar") {
		t.Errorf("%+v, %+v", got.Failure(), out)
	}
}

func TestEachIsOfTheBaseBranch(t *testing.T) {
	r, _, a := world(t)
	r.Write("c.txt", "not committed\n")
	got := analyze(t, a, command("files"))
	if got.Failure() != nil {
		t.Fatal(got.Failure())
	}
	var items []string
	for _, p := range forge.As[*forge.Analysis](got.Output).Tasks {
		items = append(items, p.Item)
	}
	if diff := cmp.Diff([]string{"a.txt", "b.txt"}, items); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(r.Dir + "/.forge/worktrees/tidy-analyze"); err == nil {
		t.Error("the checkout is kept")
	}
}

func TestNothingToDo(t *testing.T) {
	_, _, a := world(t)
	if got := analyze(t, a, command("none")); got.Failure() != nil || forge.As[*forge.Analysis](got.Output).NothingToDo == "" {
		t.Errorf("%+v", got)
	}
}

func TestFailures(t *testing.T) {
	r, _, a := world(t)
	fails := func(c forge.Command, reason forge.FailureReason, message string) {
		t.Helper()
		got := analyze(t, a, c)
		failure, out := got.Failure(), forge.As[*forge.Analysis](got.Output)
		if failure == nil || failure.Reason != reason || !strings.Contains(failure.Message, message) || out != nil {
			t.Errorf("got %+v, %+v; want %s: ...%s...", failure, out, reason, message)
		}
	}
	fails(command("renam"), forge.FailConfig, `did you mean "rename"?`)
	fails(command("fails"), forge.FailConfig, "exited with status 3")
	c := command("rename")
	c.Intent.Agent = "somebody"
	fails(c, forge.FailConfig, `there is no agent "somebody" here; known are recipe`)
	fails(command(""), forge.FailConfig, `no agent "claude" here`)
	r.Commit("break it", map[string]string{"pfl-forge.yaml": "agent: recipe\n\nverfy: [x]\n"})
	fails(command("rename"), forge.FailConfig, "pfl-forge.yaml:3: verfy")
}

// scribe is an agent that keeps the calls, and a file of each conversation.
type scribe struct{ calls []agent.Call }

func (s *scribe) Name() string { return "claude" }

func (s *scribe) SessionFiles(stateDir, id string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(stateDir, id)); err != nil {
		return nil, nil //nolint:nilerr // there is no such conversation
	}
	return []string{id}, nil
}

func (s *scribe) Run(_ context.Context, c agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	s.calls = append(s.calls, c)
	if err := errors.Join(os.MkdirAll(c.StateDir, 0o700), os.WriteFile(filepath.Join(c.StateDir, "s1"), nil, 0o600)); err != nil {
		return agent.Outcome{}, agent.AsFailure(err)
	}
	sink(agent.Event{Kind: agent.EventTool, Tool: "Read", Text: "a.txt"})
	if len(s.calls) > 1 {
		return agent.Outcome{Session: "s1"}, agent.Fail(forge.FailOverloaded, "busy")
	}
	return agent.Outcome{
		Session: "s1", Model: "m1", Usage: forge.Usage{Calls: 1, CostUSD: 0.5},
		Answer: []byte(`{"type":"fix","risk":"high","tasks":[{"name":"a","title":"A"}],"observations":[{"content":"odd"}]}`),
	}, nil
}

func TestWhatIsAskedOfAModel(t *testing.T) {
	s := &scribe{}
	r, _, a := world(t, s)
	var seen []forge.Progress
	got := a.Handlers()[0].Do(t.Context(), command(""), func(p forge.Progress) { seen = append(seen, p) })
	want := forge.Result{
		Agent: "claude", Model: "m1", Session: "s1", Usage: forge.Usage{Calls: 1, CostUSD: 0.5},
		Observations: []forge.Observation{{Content: "odd", Source: forge.StepAnalyze, IntentID: "tidy"}},
		Output: &forge.Analysis{
			Type: "fix", Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "a", Title: "A"}}, Base: string(r.Head("main")),
		},
	}
	ignore := cmp.Options{
		cmpopts.IgnoreFields(forge.Observation{}, "CreatedAt"), cmpopts.IgnoreFields(forge.Analysis{}, "Policy"),
		cmpopts.IgnoreFields(forge.Result{}, "Executor"),
	}
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Error(diff)
	}
	call := s.calls[0]
	if !strings.HasPrefix(call.Prompt, "Plan this request.") {
		t.Errorf("told %s", call.Prompt)
	}
	if !call.ReadOnly || call.Model != "sonnet" || call.Limits.Wall != 10*time.Minute || call.Session.Resume || len(call.Schema) == 0 {
		t.Errorf("got %+v", call)
	}
	if diff := cmp.Diff([]string{"Read", "Glob", "Grep"}, call.Tools); diff != "" {
		t.Error(diff)
	}
	if len(seen) != 1 || seen[0].Kind != forge.ProgressTool || seen[0].Text != "Read a.txt" || seen[0].Agent != "claude" {
		t.Errorf("progress %+v", seen)
	}

	c := command("")
	c.Session, c.Resume = "s1", true
	got = analyze(t, a, c)
	if got.Failure() == nil || got.Failure().Reason != forge.FailOverloaded || got.Session != "s1" || got.Agent != "claude" {
		t.Errorf("got %+v", got)
	}
	if call := s.calls[1]; call.Session != (agent.Session{ID: "s1", Resume: true}) || call.StateDir != s.calls[0].StateDir {
		t.Errorf("got %+v, %s", call.Session, call.StateDir)
	}
	if told := s.calls[1].Prompt; !strings.HasPrefix(told, "Go on with the plan") {
		t.Errorf("told %s", told)
	}

	// Where the conversation is gone, everything is told again.
	c.Session = "s2"
	analyze(t, a, c)
	if call := s.calls[2]; call.Session != (agent.Session{ID: "s2"}) || call.Prompt != s.calls[0].Prompt {
		t.Errorf("got %+v, told %s", call.Session, call.Prompt)
	}
}

// The policy alone is read where a budget may have been raised: no agent is called.
func TestPolicyOnly(t *testing.T) {
	s := &scribe{}
	r, _, a := world(t, s)
	c := command("")
	c.Input = &forge.AnalyzeInput{PolicyOnly: true}
	got := analyze(t, a, c)
	out := forge.As[*forge.Analysis](got.Output)
	if got.Failure() != nil || out.Policy.MaxReviewRetries != 5 || out.Base != string(r.Head("main")) || got.Agent != "" || len(s.calls) > 0 {
		t.Errorf("%+v, %+v, %d calls", got.Failure(), out, len(s.calls))
	}
}

// Sessions are kept while an intent goes on, and no longer.
func TestSessionsEndWithTheirIntent(t *testing.T) {
	_, set, a := world(t)
	repo, err := set.Get(repotest.Project)
	if err != nil {
		t.Fatal(err)
	}
	b := bustest.Start(t)
	dir := func(intent forge.IntentID) string {
		dir := repo.StateDir(jobs.StateName(intent, forge.StepAnalyze))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	over, tidy, other := dir("over"), dir("tidy"), dir("other")
	journal := func(id forge.IntentID, status forge.Status) {
		key := forge.Key{Project: repotest.Project, Intent: id}
		if _, err := b.Journal.Append(t.Context(), key, chain.Head{}, forge.Record{Summary: forge.Summary{Key: key, Status: status}}); err != nil {
			t.Fatal(err)
		}
	}
	journal("over", forge.StatusDone)
	journal("tidy", forge.StatusExecuting)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- a.Run(ctx, &service.Worker{
			Bus: b, Replica: "w1", Log: slog.New(slog.DiscardHandler), Handlers: a.Handlers(), Parallel: 1,
		})
	}()
	gone := func(dir string) bool { _, err := os.Stat(dir); return errors.Is(err, os.ErrNotExist) }
	ended := forge.Effects{Ended: true}
	wait.Until(t, "sessions of intents that ended are gone", func() bool {
		if err := b.Effects.Dispatch(t.Context(), forge.Key{Project: repotest.Project, Intent: "tidy"}, ended); err != nil {
			t.Fatal(err)
		}
		return gone(over) && gone(tidy)
	})
	if gone(other) {
		t.Error("sessions of another intent are gone")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
