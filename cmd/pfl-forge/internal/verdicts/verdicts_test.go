// Package verdicts_test has the suites of verdicts: reviewers and judges that lie, and honest
// ones, at the real worker, in a real repository, with the rules that decide on what it reports.
package verdicts_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/reviewer"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/goal"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// object is JSON.
type object = map[string]any

// asked are the requirements of the task, and the criteria of the goal.
var asked = []string{"Sum adds two numbers", "A test shows that, and no mention of FIXME is left"}

// speaker is a model that says the same, however often it is asked.
type speaker struct {
	answer []byte
	asked  int
}

func (*speaker) Name() string { return "claude" }

func (s *speaker) Run(ctx context.Context, c agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	return agent.RunWithRepair(ctx, c, sink, func(context.Context, agent.Call, func(agent.Event)) (agent.Outcome, error) {
		s.asked++
		return agent.Outcome{Session: "s1", Model: "m1", Answer: s.answer, Duration: time.Second}, nil
	})
}

// court is a repository with a change, and a reviewer for it.
type court struct {
	repo gittest.Repo
	// speaker is the model, or has the words of the one behind the real CLI.
	speaker *speaker
	do      func(step forge.Step, c forge.Command) forge.Result
	verify  *forge.VerifyReport
}

// newCourt makes the change that is reviewed and judged by a speaker.
func newCourt(t *testing.T) *court {
	t.Helper()
	s := &speaker{}
	return convene(t, s, s)
}

// newClaudeCourt is newCourt with the real CLI, whose model says what the speaker is to say.
func newClaudeCourt(t *testing.T) *court {
	t.Helper()
	s := &speaker{}
	cli, _ := repotest.Claude(t, func(r agenttest.Request) agenttest.Reply {
		var words object
		if err := json.Unmarshal(s.answer, &words); err != nil {
			t.Error(err)
		}
		return agenttest.Answer(words)(r)
	})
	return convene(t, s, cli)
}

// convene returns the court of an agent.
func convene(t *testing.T, s *speaker, by agent.Agent) *court {
	t.Helper()
	r := gittest.New(t, map[string]string{
		"sum.go":     "package sum\n\n// Sum is not done.\nfunc Sum(a, b int) int {\n\treturn 0 // FIXME: add them\n}\n",
		"old_api.md": "# The old interface\n\nIt goes away with this change.\n",
		"notes.txt":  "notes that stay as they are\nsecond note of the file\n",
	})
	r.Git("checkout", "-q", "-b", "change")
	r.Write("sum.go", "package sum\n\n// Sum adds two numbers.\nfunc Sum(a, b int) int {\n\tresult := a + b\n\treturn result\n}\n")
	r.Write("sum_test.go", "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n\t\tt.Error(\"1 + 2 is not 3\")\n\t}\n}\n")
	r.Write("logo.png", "\x89PNG\x00\x01binary")
	r.Write("説明.md", "# 合計\n\n二つの数を足します。\n")
	if err := os.Symlink("sum.go", filepath.Join(r.Dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	r.Git("rm", "-q", "old_api.md")
	r.Git("add", "-A")
	r.Git("commit", "-q", "-m", "Add them")
	r.Git("checkout", "-q", "main")
	tree := strings.TrimSpace(r.Git("rev-parse", "change^{tree}"))
	stale := strings.TrimSpace(r.Git("rev-parse", "main^{tree}"))
	c := &court{repo: r, speaker: s, verify: &forge.VerifyReport{Passed: true, Runs: []forge.CheckRun{
		{ID: "v1", Name: "tests", Command: "go test ./...", Tree: tree, Passed: true, Output: "ok  \tsum\t0.01s\n"},
		{ID: "v2", Name: "lint", Command: "lint ./...", Tree: tree, ExitCode: 1, Output: "sum.go:5: no\n"},
		{ID: "v3", Name: "coverage", Command: "cover", Tree: stale, Passed: true, Output: "100%\n"},
	}}}
	rv := reviewer.New(repotest.Local(t, r.Dir, by), "v1", nil)
	c.do = func(step forge.Step, cmd forge.Command) forge.Result {
		i := slices.IndexFunc(rv.Handlers(), func(h service.Handler) bool { return h.Step == step })
		return rv.Handlers()[i].Do(t.Context(), cmd, func(forge.Progress) {})
	}
	return c
}

// answer is what a reviewer or judge says.
type answer struct {
	claims []object
	// positive is its word on the whole.
	positive bool
	issues   []string
}

// review has a reviewer say it, and returns whether the rules let the change be
// merged, and the feedback if not.
func (c *court) review(t *testing.T, a answer) (lands bool, feedback string) {
	t.Helper()
	verdict := forge.VerdictRejected
	if a.positive {
		verdict = forge.VerdictApproved
	}
	one := c.task()
	one.Requirements = asked
	cmd := c.command(forge.StepReview, one, &forge.ReviewInput{Verify: c.verify})
	r := c.say(t, cmd, object{"requirements": append([]object{}, a.claims...), "verdict": verdict, "issues": append([]string{}, a.issues...)})
	x := c.turn(task.Change{})
	if err := one.Reviewed(x, forge.As[*forge.Review](r.Output), forge.Reviewer{}); err != nil {
		t.Fatal(err)
	}
	return one.Stage == task.Merging, one.Feedback
}

// judge is review for a judge, and the criteria of a goal.
func (c *court) judge(t *testing.T, a answer) (completes bool, feedback string) {
	t.Helper()
	one := c.task()
	one.Criteria = asked
	cmd := c.command(forge.StepJudge, one, &forge.IterationInput{Verify: c.verify, Goal: forge.GoalContext{
		Iteration: 1, Criteria: asked, Execution: &forge.Execution{Status: forge.ExecutionSuccess, Output: "All is done and tested."},
	}})
	r := c.say(t, cmd, object{
		"criteria": append([]object{}, a.claims...), "overall_reason": "As I say. " + strings.Join(a.issues, " "), "is_complete": a.positive,
	})
	g := goal.Strategy{State: &goal.State{Iterations: []forge.Iteration{{Number: 1}}, Used: 1}, Options: &forge.GoalOptions{}}
	x := c.turn(g)
	if err := g.Judged(x, one, forge.As[*forge.Judgment](r.Output)); err != nil {
		t.Fatal(err)
	}
	return one.Stage == task.Merging, g.Iterations[0].Judgment.NextAction
}

// task is the task whose change is decided on.
func (c *court) task() *task.Task {
	base, head := string(c.repo.Head("main")), string(c.repo.Head("change"))
	return &task.Task{Stage: task.Reviewing, Task: forge.Task{
		ID: "fix-001", IntentID: "fix", Title: "Add the numbers", Plan: "In sum.go.", Base: base, Head: head, Status: forge.TaskImplementing,
	}, Candidate: &forge.Rebase{Base: base, Head: head, PatchID: "p"}}
}

// command is the command of a step about a task.
func (c *court) command(step forge.Step, one *task.Task, in forge.Input) forge.Command {
	return forge.Command{
		BudgetUSD: 5,
		To:        forge.Key{Project: repotest.Project, Intent: "fix"},
		Attempt:   forge.Attempt{Task: "fix-001", Step: step, Number: 1, Claim: 1},
		Intent:    forge.Intent{ID: "fix", Project: repotest.Project, Settings: forge.Settings{Title: "Fix it"}},
		Task:      one.Task, Input: in,
	}
}

// say has the speaker answer a command. No answer is an error for a person.
func (c *court) say(t *testing.T, cmd forge.Command, v object) forge.Result {
	t.Helper()
	var err error
	if c.speaker.answer, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	c.speaker.asked = 0
	r := c.do(cmd.Attempt.Step, cmd)
	if f := r.Failure(); f != nil {
		t.Fatalf("it is an error for a person: %+v", f)
	}
	if c.speaker.asked > 2 {
		t.Errorf("it was asked %d times", c.speaker.asked)
	}
	return r
}

// turn is one decision on the task.
func (c *court) turn(s task.Strategy) *task.Turn {
	policy := forge.DefaultPolicy()
	return task.NewTurn(task.Turn{
		Now: time.Unix(0, 0).UTC(), Intent: &forge.Intent{ID: "fix"}, Policy: &policy, Strategy: s, Tasks: &task.Set{},
	})
}

// cite is a piece of evidence.
func cite(kind, ref, quote string) object { return object{"kind": kind, "ref": ref, "quote": quote} }

// claim says that something is met.
func claim(number int, evidence ...object) object {
	if evidence == nil {
		evidence = []object{}
	}
	return object{"number": number, "met": true, "confidence": 0.95, "note": "It is there.", "evidence": evidence}
}

// with returns a copy of a claim with one field changed.
func with(c object, field string, value any) object {
	c = maps.Clone(c)
	c[field] = value
	return c
}

// honest are good claims of both requirements.
func honest() (first, second object) {
	return claim(1, cite("diff", "sum.go:5", "result := a + b")), claim(2, cite("file", "sum_test.go:5-6", "func TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {"))
}

// TestTheFirstsAnswerGivenAsTheSeconds has a first reviewer that approves, and its
// answer, which the real worker reported, as that of the second in several ways: none
// of them lands the change, and none sends it back either. The second's own does.
func TestTheFirstsAnswerGivenAsTheSeconds(t *testing.T) {
	c := newCourt(t)
	first, second := honest()
	one := c.task()
	one.Requirements = asked
	x := c.turn(task.Change{})
	x.Intent.Risk = forge.RiskHigh
	x.Policy.Second = forge.SecondReview{By: forge.Reviewer{Agent: "codex"}, When: []forge.Risk{forge.RiskHigh}}
	cmd := c.command(forge.StepReview, one, &forge.ReviewInput{Verify: c.verify})
	r := c.say(t, cmd, object{"requirements": []object{first, second}, "verdict": forge.VerdictApproved, "issues": []string{}})
	said := *forge.As[*forge.Review](r.Output)
	if err := one.Reviewed(x, &said, forge.Reviewer{}); err != nil || one.Stage != task.Reviewing || one.Second == nil {
		t.Fatalf("after the first: %v, %s", err, one.Stage)
	}
	for name, lie := range map[string]func(*forge.Review){
		"as it is":             func(*forge.Review) {},
		"with the second word": func(v *forge.Review) { v.Second = true },
		"in another's name":    func(v *forge.Review) { v.By.Agent = "codex" },
		"of the base":          func(v *forge.Review) { v.Second, v.By.Agent, v.Head = true, "codex", string(c.repo.Head("main")) },
		"of another task":      func(v *forge.Review) { v.Second, v.By.Agent, v.TaskID = true, "codex", "fix-002" },
	} {
		again := said
		lie(&again)
		if err := one.Reviewed(x, &again, forge.Reviewer{}); err == nil || one.Stage != task.Reviewing || len(one.Reviews) != 1 {
			t.Errorf("%s: %v, %s", name, err, one.Stage)
		}
	}
	// Its claims are looked up like the first's: no evidence, no approval.
	empty := said
	empty.Second, empty.By.Agent, empty.Claims = true, "codex", nil
	other := *one
	err := other.Reviewed(x, &empty, forge.Reviewer{})
	if err != nil || other.Stage != task.Implementing || !strings.Contains(other.Feedback, "it was left out") {
		t.Errorf("without claims: %v, %s, %q", err, other.Stage, other.Feedback)
	}
	said.Second, said.By.Agent = true, "codex"
	if err := one.Reviewed(x, &said, forge.Reviewer{}); err != nil || one.Stage != task.Merging {
		t.Errorf("the second's own: %v, %s", err, one.Stage)
	}
}

// fair are honest pieces of evidence, in the forms in which models cite.
var fair = [][]object{
	{cite("diff", "sum.go:5", "result := a + b")},
	{cite("diff", "sum.go:5", "+\tresult := a + b")},
	{cite("diff", "sum.go:5-6", "+\tresult := a + b\n+\treturn result")},
	{cite("diff", "sum.go:5", "-\treturn 0 // FIXME: add them")},
	{cite("diff", "sum.go:5-6", "\tresult := a + b\n\treturn result\n")},
	{cite("diff", "sum.go:3", "// Sum adds two numbers.")},
	{cite("diff", "sum_test.go:1-9", "if Sum(1, 2) != 3 {")},
	{cite("diff", "logo.png", "")},
	{cite("diff", "link.go", "")},
	{cite("diff", "old_api.md:1", "-# The old interface")},
	{cite("diff", "説明.md:3", "二つの数を足します。")},
	{cite("file", "sum.go:5", "result := a + b")},
	{cite("file", "sum.go:5", "    result := a + b   ")},
	{cite("file", "sum.go:L5", "result := a")},
	{cite("file", "sum.go:5-6", "result := a + b\nreturn result")},
	{cite("file", "sum.go:5", "result := a + b\n\treturn result")},
	{cite("file", "sum.go:3-7", "// Sum adds two numbers.\nfunc Sum(a, b int) int {\nresult := a + b\nreturn result\n}")},
	{cite("file", "sum.go:1-7", "return result")},
	{cite("file", "sum_test.go:7", `t.Error("1 + 2 is not 3")`)},
	{cite("file", "説明.md:1", "# 合計")},
	{cite("file", "説明.md:1", "合計")},
	{cite("file", "sum.go:4-5", "func Sum(a, b int) int {\n\tresult := a + b")},
	{cite("command", "tests", "")},
	{cite("command", "v1", "")},
	{cite("command", "go test ./...", "")},
	{cite("command", "tests", "ok  \tsum")},
	{cite("absence", "old_api.md", "")},
	{cite("absence", ".", "FIXME")},
	{cite("absence", "sum.go", "FIXME")},
	{cite("absence", ".", "// Sum is not done.")},
	{cite("diff", "sum.go:5", "result := a + b"), cite("command", "tests", "")},
	{cite("file", "notes.txt:2", "second note of the file"), cite("diff", "sum.go:6", "return result")},
	{cite("absence", ".", "FIXME"), cite("file", "sum_test.go:5", "func TestSum(t *testing.T) {")},
	{cite("diff", "sum.go:5", "result := a + b"), cite("diff", "sum.go:5", "result := a + b")},
}

// TestHonest has honest reviewers and judges of varied form: the code rejects
// none of them, and none is asked for its answer twice.
func TestHonest(t *testing.T) {
	c := newCourt(t)
	first, second := honest()
	runs := 0
	for i, evidence := range fair {
		one := claim(1, evidence...)
		for _, a := range []answer{
			{claims: []object{one, second}, positive: true},
			{claims: []object{second, with(one, "confidence", 0.7)}, positive: true},
		} {
			runs++
			decide := c.review
			if i%2 == runs%2 {
				decide = c.judge
			}
			if lands, feedback := decide(t, a); !lands {
				t.Errorf("%v: rejected: %s", evidence, feedback)
			}
			if c.speaker.asked != 1 {
				t.Errorf("%v: asked %d times", evidence, c.speaker.asked)
			}
		}
	}
	// What was there before can be what is asked for: a judge may cite it, a
	// reviewer beside the change.
	stays := cite("file", "notes.txt:1", "notes that stay as they are")
	for name, a := range map[string]answer{
		"beside the change": {claims: []object{first, claim(2, stays)}, positive: true},
		"the other way":     {claims: []object{claim(1, stays), second}, positive: true},
		"both":              {claims: []object{claim(1, stays, cite("command", "tests", "")), second}, positive: true},
	} {
		runs += 2
		if lands, feedback := c.review(t, a); !lands {
			t.Errorf("review %s: %s", name, feedback)
		}
		if lands, feedback := c.judge(t, a); !lands {
			t.Errorf("judge %s: %s", name, feedback)
		}
	}
	t.Logf("%d honest answers", runs)
	if runs < 40 {
		t.Errorf("%d honest answers; want at least 40", runs)
	}
}

// An honest rejection stays one, in its own words.
func TestHonestRejections(t *testing.T) {
	c := newCourt(t)
	first, second := honest()
	lands, feedback := c.review(t, answer{claims: []object{first, with(claim(2), "met", false)}, issues: []string{"sum_test.go:6: test negative numbers"}})
	if lands || feedback != "sum_test.go:6: test negative numbers" {
		t.Errorf("lands %v, told %q", lands, feedback)
	}
	lands, feedback = c.judge(t, answer{claims: []object{first, with(with(second, "met", false), "note", "negative numbers are not tested")}})
	if want := "Criterion 2 is not met (" + asked[1] + "): negative numbers are not tested"; lands || feedback != want {
		t.Errorf("lands %v, told %q", lands, feedback)
	}
}
