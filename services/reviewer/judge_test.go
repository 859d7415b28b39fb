package reviewer_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/codex"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/reviewer"
)

// oracle is a model that keeps the calls and always gives the same answer.
type oracle struct {
	answer string
	calls  []agent.Call
}

func (o *oracle) Name() string { return "claude" }

func (o *oracle) Run(_ context.Context, c agent.Call, _ func(agent.Event)) (agent.Outcome, error) {
	o.calls = append(o.calls, c)
	return agent.Outcome{Session: c.Session.ID, Model: "m1", Answer: []byte(o.answer)}, nil
}

// goalWorld is a repository on whose branch change a goal is worked on.
func goalWorld(t *testing.T, others ...agent.Agent) (gittest.Repo, func(forge.Command) forge.Result) {
	t.Helper()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": "timeouts: {review: 3m}\nverify: [make test]\n", "a.txt": "a\n"})
	r.Git("checkout", "-q", "-b", "change")
	r.Commit("all criteria are met", map[string]string{"new.txt": "new\n"})
	r.Git("checkout", "-q", "main")
	rv := reviewer.New(repotest.Local(t, r.Dir, others...), "v1", nil)
	return r, func(c forge.Command) forge.Result {
		i := slices.IndexFunc(rv.Handlers(), func(h service.Handler) bool { return h.Step == forge.StepJudge })
		return rv.Handlers()[i].Do(t.Context(), c, func(forge.Progress) {})
	}
}

func goalCommand(r gittest.Repo, criteria ...string) forge.Command {
	c := command(r, "", "")
	c.Attempt.Step, c.Session = forge.StepJudge, "00000000-0000-4000-8000-000000000000"
	c.Input = &forge.IterationInput{Verify: &forge.VerifyReport{Passed: true}, Goal: forge.GoalContext{
		Iteration: 1, Criteria: criteria, Execution: &forge.Execution{Status: forge.ExecutionSuccess, Output: "I say that it is done."},
	}}
	return c
}

func TestJudge(t *testing.T) {
	o := &oracle{answer: `{"criteria": [
		{"number": 2, "note": "no test", "met": false, "confidence": 0.9, "evidence": []},
		{"number": 1, "note": "it is there", "met": true, "confidence": 1, "evidence": [
			{"kind": "file", "ref": "new.txt:1", "quote": "new"}, {"kind": "file", "ref": "old.txt:1", "quote": "old"}]}],
		"overall_reason": "Half.", "is_complete": true, "suggested_next_action": "Test it."}`}
	r, judge := goalWorld(t, o)
	got := judge(goalCommand(r, "There is a new.txt", "A test shows it"))
	want := &forge.Judgment{
		Head: string(r.Head("change")), Complete: true, Reason: "Half.", NextAction: "Test it.",
		Claims: []forge.Claim{
			{Number: 2, Text: "A test shows it", Note: "no test", Confidence: 0.9, Evidence: []forge.Citation{}},
			{Number: 1, Text: "There is a new.txt", Met: true, Note: "it is there", Confidence: 1, Evidence: []forge.Citation{
				{Kind: forge.CitationFile, Ref: "new.txt:1", Quote: "new", Resolved: true},
				{Kind: forge.CitationFile, Ref: "old.txt:1", Quote: "old", Reason: "old.txt does not exist"},
			}},
		},
	}
	if diff := cmp.Diff(want, forge.As[*forge.Judgment](got.Output)); diff != "" || forge.As[*forge.Review](got.Output) != nil ||
		got.Failure() != nil || got.Agent != "claude" || got.Model != "m1" {
		t.Errorf("%+v\n%s", got, diff)
	}
	call := o.calls[0]
	if call.Role != agent.RoleJudge || !call.ReadOnly || len(call.Tools) > 0 || call.Limits.Wall != 3*time.Minute ||
		call.Session != (agent.Session{ID: "00000000-0000-4000-8000-000000000000"}) || strings.HasPrefix(call.Dir, r.Dir) {
		t.Errorf("got %+v", call)
	}
	for _, told := range []string{"+new\n", "make test", "I say that it is done.", "Criterion 2:\n"} {
		if !strings.Contains(call.Prompt, told) {
			t.Errorf("%q was not told:\n%s", told, call.Prompt)
		}
	}
	if strings.Contains(call.Prompt, "all criteria are met") {
		t.Errorf("it reads commit messages:\n%s", call.Prompt)
	}
	err := call.Check([]byte(strings.ReplaceAll(o.answer, `"number": 2`, `"number": 1`)))
	for _, want := range []string{"criterion 1 was answered more than once", "criterion 2: it was left out"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := call.Check([]byte(o.answer)); err != nil {
		t.Errorf("it is asked twice: %v", err)
	}
}

// Where nothing was changed there is no commit to read.
func TestJudgeWithoutAChange(t *testing.T) {
	o := &oracle{answer: `{"criteria": [{"number": 1, "note": "the report", "met": true, "confidence": 1, "evidence": []}],
		"overall_reason": "It says so.", "is_complete": true}`}
	r, judge := goalWorld(t, o)
	c := goalCommand(r, "The report says what a.txt is for")
	c.Task.Head = ""
	got := judge(c)
	if out := forge.As[*forge.Judgment](got.Output); got.Failure() != nil || out.Head != "" || !out.Complete {
		t.Errorf("%+v, %+v", got.Failure(), out)
	}
	if p := o.calls[0].Prompt; !strings.Contains(p, "Nothing was changed: there is no commit") ||
		!strings.Contains(p, "the base branch as it is, all of them passed") {
		t.Errorf("told %s", o.calls[0].Prompt)
	}
}

func TestJudgeFailures(t *testing.T) {
	o := &oracle{answer: `{"criteria": [], "overall_reason": "", "is_complete": true}`}
	r, judge := goalWorld(t, o)
	fails := func(c forge.Command, reason forge.FailureReason, message string) {
		t.Helper()
		got := judge(c)
		failure := got.Failure()
		if failure == nil || failure.Reason != reason || !strings.Contains(failure.Message, message) || forge.As[*forge.Judgment](got.Output) != nil {
			t.Errorf("got %+v", got.Failure())
		}
	}
	fails(goalCommand(r, "It is done"), forge.FailInvalidOutput, "overall_reason is empty")
	fails(goalCommand(r), forge.FailInvalidOutput, "goal.criteria")
	c := goalCommand(r, "It is done")
	c.Task.Head = strings.Repeat("1", 40)
	fails(c, forge.FailRepository, "not found")
	c.Task.Head = "--upload-pack=x"
	fails(c, forge.FailInvalidOutput, "head")
	r.Commit("recipes only", map[string]string{"pfl-forge.yaml": "agent: recipe\n"})
	fails(goalCommand(r, "It is done"), forge.FailConfig, "roles.review")
}

// The real CLI judges without a tool, and evaluates what it left out at first.
func TestClaudeJudges(t *testing.T) {
	one, two := claim(1, "file", "new.txt:1", "new"), claim(2, "diff", "new.txt:1", "+new")
	answer := func(list ...object) object {
		return object{"criteria": list, "overall_reason": "Both.", "is_complete": true}
	}
	claude, model := repotest.Claude(t, agenttest.Steps(agenttest.Answer(answer(one)), agenttest.Answer(answer(two, one))))
	r, judge := goalWorld(t, claude)
	got := judge(goalCommand(r, "There is a new.txt", "It says \"new\""))
	if got.Failure() != nil {
		t.Fatalf("%+v", got.Failure())
	}
	want := &forge.Judgment{
		Head: string(r.Head("change")), Complete: true, Reason: "Both.",
		Claims: []forge.Claim{
			{Number: 2, Text: "It says \"new\"", Met: true, Note: "it is there", Confidence: 0.9, Evidence: []forge.Citation{
				{Kind: forge.CitationDiff, Ref: "new.txt:1", Quote: "+new", Resolved: true},
			}},
			{Number: 1, Text: "There is a new.txt", Met: true, Note: "it is there", Confidence: 0.9, Evidence: []forge.Citation{
				{Kind: forge.CitationFile, Ref: "new.txt:1", Quote: "new", Resolved: true},
			}},
		},
	}
	if diff := cmp.Diff(want, forge.As[*forge.Judgment](got.Output)); diff != "" || got.Usage.InputTokens == 0 || got.Session == "" {
		t.Errorf("%+v\n%s", got, diff)
	}
	requests := model.Requests("model")
	if first := requests[0]; !strings.Contains(first.System, "You judge whether a goal is reached") || !strings.Contains(first.LastUser, "+new") {
		t.Errorf("told %s", first.LastUser)
	}
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "criterion 2: it was left out") {
		t.Errorf("it was not asked to correct its answer: %s", last.LastUser)
	}
	for _, tool := range requests[0].Tools {
		if tool != "StructuredOutput" {
			t.Errorf("it has %s", tool)
		}
	}
}

// An agent of another maker has no tools either, whatever its model tries.
func TestCodexJudges(t *testing.T) {
	model := agenttest.NewServer(t)
	base := model.Script("model", agenttest.Steps(
		agenttest.Use("exec_command", object{"cmd": "git log; ls -A; cat a.txt new.txt"}),
		agenttest.Say(`{"criteria": [{"number": 1, "note": "none", "met": false, "confidence": 1, "evidence": []}], `+
			`"overall_reason": "No.", "is_complete": false}`),
	))
	r, judge := goalWorld(t, codex.New(cli.Options{
		Path: agenttest.CLI(t, "codex"), Owner: process.NewOwner(t.TempDir()),
		Env: []string{"OPENAI_API_KEY=test-key", "OPENAI_BASE_URL=" + base + "/v1", cli.RetriesVariable + "=0"},
	}))
	c := goalCommand(r, "There is a b.txt")
	c.Intent.Agent = "codex"
	got := judge(c)
	if out := forge.As[*forge.Judgment](got.Output); got.Failure() != nil || out.Complete || out.Claims[0].Note != "none" {
		t.Fatalf("%+v, %+v", got.Failure(), out)
	}
	requests := model.Requests("model")
	if saw := requests[len(requests)-1].LastResult; saw != "unsupported call: exec_command" {
		t.Errorf("it saw %s", saw)
	}
}
