package reviewer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/services/reviewer"
)

const settings = `
worktree_setup: ['echo ready > ready.txt']
timeouts: {review: 10m}
recipes:
  checked: {run: 'true', check: 'cat ready.txt new.txt; test -e good.txt'}
  unchecked: {run: 'true'}
  named:
    check: 'false'
    tasks:
      - {name: own, run: 'true', check: 'test -e new.txt'}
      - {name: common, run: 'true'}
`

// world is a repository on whose branch change a commit waits for a review.
func world(t *testing.T, others ...agent.Agent) (gittest.Repo, func(forge.Command) forge.Result) {
	t.Helper()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n"})
	r.Git("checkout", "-q", "-b", "change")
	r.Commit("I am sure that this is right", map[string]string{"new.txt": "new\n"})
	r.Git("checkout", "-q", "main")
	rv := reviewer.New(repotest.Local(t, r.Dir, others...), "v1", nil)
	return r, func(c forge.Command) forge.Result {
		return rv.Handlers()[0].Do(t.Context(), c, func(forge.Progress) {})
	}
}

func command(r gittest.Repo, recipe, task string) forge.Command {
	return forge.Command{
		BudgetUSD: 5,
		To:        forge.Key{Project: repotest.Project, Intent: "fix"},
		Attempt:   forge.Attempt{Task: "fix-001", Step: forge.StepReview, Number: 1, Claim: 1},
		Intent:    forge.Intent{ID: "fix", Project: repotest.Project, Settings: forge.Settings{Title: "Fix it", Recipe: recipe}},
		Task: forge.Task{
			ID: "fix-001", IntentID: "fix", Title: "A file", Plan: "Write it.", Name: task,
			Base: string(r.Head("main")), Head: string(r.Head("change")),
		},
	}
}

func TestAChecksExitStatusIsTheVerdict(t *testing.T) {
	r, review := world(t)
	head := string(r.Head("change"))
	for _, tt := range []struct {
		recipe, task string
		verdict      forge.Verdict
		issue        string
	}{
		{"checked", "", forge.VerdictRejected, "exited with status 1:\nready\nnew"},
		{"unchecked", "", forge.VerdictApproved, ""},
		{"named", "own", forge.VerdictApproved, ""},
		{"named", "common", forge.VerdictRejected, "exited with status 1"},
	} {
		got := review(command(r, tt.recipe, tt.task))
		if got.Failure() != nil {
			t.Errorf("%s %s: %+v", tt.recipe, tt.task, got.Failure())
			continue
		}
		rv := forge.As[*forge.Review](got.Output)
		if rv.Verdict != tt.verdict || rv.Head != head || rv.TaskID != "fix-001" || !strings.Contains(strings.Join(rv.Issues, ""), tt.issue) {
			t.Errorf("%s %s: %+v", tt.recipe, tt.task, rv)
		}
	}
}

func TestFailures(t *testing.T) {
	r, review := world(t)
	fails := func(c forge.Command, reason forge.FailureReason, message string) {
		t.Helper()
		got := review(c)
		failure := got.Failure()
		if failure == nil || failure.Reason != reason || !strings.Contains(failure.Message, message) || forge.As[*forge.Review](got.Output) != nil {
			t.Errorf("got %+v", failure)
		}
	}
	c := command(r, "checked", "")
	c.Task.Head = strings.Repeat("1", 40)
	fails(c, forge.FailRepository, "not found")
	c.Task.Head = "--upload-pack=x"
	fails(c, forge.FailInvalidOutput, "head")
	broken := strings.Replace(settings, "echo ready > ready.txt", "echo no network; exit 7", 1)
	r.Commit("a set-up that fails", map[string]string{"pfl-forge.yaml": broken})
	fails(command(r, "checked", ""), forge.FailRepository, "no network\nexit status 7")
}

// judge is a model that keeps the calls.
type judge struct{ calls []agent.Call }

func (j *judge) Name() string { return "claude" }

func (j *judge) Run(_ context.Context, c agent.Call, _ func(agent.Event)) (agent.Outcome, error) {
	j.calls = append(j.calls, c)
	return agent.Outcome{Session: "s1", Model: "m1", Answer: []byte(`{"verdict":"rejected","issues":["a.txt: no"],"suggestions":["b"]}`)}, nil
}

func TestAModelSeesTheChangeAndNotWhatItsAuthorSays(t *testing.T) {
	j := &judge{}
	r, review := world(t, j)
	c := command(r, "", "")
	c.Input = &forge.ReviewInput{Verify: &forge.VerifyReport{Passed: true}}
	got := review(c)
	want := &forge.Review{
		TaskID: "fix-001", Head: string(r.Head("change")), Verdict: forge.VerdictRejected,
		By: forge.Reviewer{Agent: "claude", Model: "sonnet"}, Issues: []string{"a.txt: no"}, Suggestions: []string{"b"},
	}
	if diff := cmp.Diff(want, forge.As[*forge.Review](got.Output)); diff != "" || got.Agent != "claude" || got.Model != "m1" || got.Session != "s1" {
		t.Errorf("%+v\n%s", got, diff)
	}
	call := j.calls[0]
	if !call.ReadOnly || call.Limits.Wall != 10*time.Minute || call.Session != (agent.Session{}) {
		t.Errorf("got %+v", call)
	}
	if !strings.Contains(call.Prompt, "+new\n") || strings.Contains(call.Prompt, "I am sure") {
		t.Errorf("prompt:\n%s", call.Prompt)
	}
}

// TestSecondReview has both reviews of one change: each says by whom it is, the second
// is of the same commit, and is asked the same but for what the first said of that.
func TestSecondReview(t *testing.T) {
	j := &judge{}
	r, review := world(t, j)
	r.Git("checkout", "-q", "main")
	r.Commit("a second reviewer", map[string]string{"pfl-forge.yaml": settings + "review: {second: {model: opus}}\n"})
	verify := &forge.VerifyReport{Passed: true}
	c := command(r, "", "")
	c.Task.Base = r.Git("merge-base", "main", "change")
	c.Input = &forge.ReviewInput{Verify: verify}
	first := forge.As[*forge.Review](review(c).Output)
	c.Attempt.Number, c.Input = 2, &forge.ReviewInput{Verify: verify, Second: &forge.Reviewer{Agent: "claude", Model: "opus"}, First: first.By}
	got := review(c)
	second := forge.As[*forge.Review](got.Output)
	if second == nil {
		t.Fatalf("%+v", got.Failure())
	}
	if first.By != (forge.Reviewer{Agent: "claude", Model: "sonnet"}) || first.Second {
		t.Errorf("the first: %+v", first)
	}
	if second.By != (forge.Reviewer{Agent: "claude", Model: "opus"}) || !second.Second || second.Head != first.Head {
		t.Errorf("the second: %+v", second)
	}
	c.Input = &forge.ReviewInput{Second: &second.By, First: second.By}
	r.Commit("and none again", map[string]string{"pfl-forge.yaml": settings + "models: {default: opus}\n"})
	none := review(c)
	if f := none.Failure(); f == nil || f.Reason != forge.FailConfig || !strings.Contains(f.Message, "claude with opus made the first review") {
		t.Errorf("nobody else: %+v", f)
	}
	if len(j.calls) != 2 || j.calls[0].Model != "sonnet" || j.calls[1].Model != "opus" || j.calls[0].Prompt != j.calls[1].Prompt {
		t.Errorf("calls: %d", len(j.calls))
	}
}

func TestALargeChangeIsGivenAsFiles(t *testing.T) {
	j := &judge{}
	r, review := world(t, j)
	r.Git("checkout", "-q", "change")
	r.Commit("much", map[string]string{"much.txt": strings.Repeat("much more\n", 30_000), "bin.dat": "\x00\x01"})
	r.Git("checkout", "-q", "main")
	if got := review(command(r, "", "")); got.Failure() != nil {
		t.Fatal(got.Failure())
	}
	p := j.calls[0].Prompt
	for _, want := range []string{
		".forge/change-001.diff (1899 lines)\n  \"much.txt\" +30000 -0\n", "change-016.diff", "no diff of them:\n- \"bin.dat\"", "  \"new.txt\" +1 -0\n",
	} {
		if !strings.Contains(p, want) {
			t.Errorf("%q is missing in the prompt:\n%.3000s", want, p)
		}
	}
	if len(p) > 10_000 || j.calls[0].Limits.MaxTurns != 117 {
		t.Errorf("%d bytes, %d turns", len(p), j.calls[0].Limits.MaxTurns)
	}
}

// A later review is told what is new since the last one.
func TestWhatDiffersFromTheLastReviewIsSaid(t *testing.T) {
	j := &judge{}
	r, review := world(t, j)
	r.Git("checkout", "-q", "change")
	r.Commit("reviewed", map[string]string{"kept.txt": "kept\n"})
	last := string(r.Head("change"))
	r.Commit("rework", map[string]string{"new.txt": "newer\n"})
	r.Git("checkout", "-q", "main")
	c := command(r, "", "")
	in := &forge.ReviewInput{Reviews: []forge.Review{{Head: last, Verdict: forge.VerdictRejected, Issues: []string{"new.txt:1: old"}}}}
	c.Input = in
	if got := review(c); got.Failure() != nil {
		t.Fatal(got.Failure())
	}
	want := "these are not as the last review read them; the others are:\n- \"new.txt\"\n\n# The change"
	if !strings.Contains(j.calls[0].Prompt, want) {
		t.Errorf("prompt:\n%s", j.calls[0].Prompt)
	}
	in.Reviews[0].Head = c.Task.Head
	if got := review(c); got.Failure() != nil || !strings.Contains(j.calls[1].Prompt, "Every file of this change is as the last review read it.") {
		t.Errorf("%v, prompt:\n%s", got.Failure(), j.calls[1].Prompt)
	}
	in.Reviews[0].Head = strings.Repeat("1", 40) // it is not here any more
	if got := review(c); got.Failure() != nil || strings.Contains(j.calls[2].Prompt, "the last review read") {
		t.Errorf("%v, prompt:\n%s", got.Failure(), j.calls[2].Prompt)
	}
}
