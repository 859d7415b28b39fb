package analyzer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// parrot is an agent that keeps the calls and always gives the same answer, in which
// DIR is where it works.
type parrot struct {
	answer string
	calls  []agent.Call
}

func (p *parrot) Name() string { return "claude" }

func (p *parrot) Run(_ context.Context, c agent.Call, _ func(agent.Event)) (agent.Outcome, error) {
	p.calls = append(p.calls, c)
	return agent.Outcome{Session: "s1", Answer: []byte(strings.ReplaceAll(p.answer, "DIR", c.Dir))}, nil
}

func step(s forge.Step) forge.Command {
	c := command("")
	c.Attempt.Step = s
	return c
}

const report = `{"summary": "Fine.", "areas": [
	{"name": "tests", "summary": "s", "findings": [{"title": "None", "detail": "a is not tested.", "severity": "med",
		"evidence": [{"type": "file", "ref": "DIR/a.txt:1"}, {"type": "file", "ref": "a.txt:1"}, {"type": "file", "ref": "./b.txt"},
			{"type": "file", "ref": "gone.txt"}, {"type": "decision", "ref": "DIR/x"}]}]},
	{"name": "design", "summary": "s", "findings": [{"title": "Made up", "detail": "d", "severity": "high",
		"evidence": [{"type": "file", "ref": "gone.txt:1"}, {"type": "file", "ref": "/etc/passwd"}, {"type": "file", "ref": "../a.txt"}]}]},
	{"name": "conventions", "summary": "s", "findings": []},
	{"name": "debt", "summary": "s", "findings": []}, {"name": "documentation", "summary": "s", "findings": []}]}`

func TestAudit(t *testing.T) {
	p := &parrot{answer: report}
	_, set, a := world(t, p)
	got := analyze(t, a, step(forge.StepAudit))
	if got.Failure() != nil {
		t.Fatal(got.Failure())
	}
	dir := p.calls[0].Dir
	evidence := []forge.Evidence{
		{Type: forge.EvidenceFile, Ref: "a.txt:1"}, {Type: forge.EvidenceFile, Ref: "b.txt"}, {Type: forge.EvidenceDecision, Ref: dir + "/x"},
	}
	wantNoticed := []forge.Observation{{
		Content: "tests (med): None\na is not tested.", Evidence: evidence, Source: forge.StepAudit, IntentID: "tidy",
	}}
	if diff := cmp.Diff(wantNoticed, got.Observations, cmpopts.IgnoreFields(forge.Observation{}, "CreatedAt")); diff != "" {
		t.Error(diff)
	}
	audit := forge.As[*forge.Audit](got.Output)
	found := audit.Areas[0].Findings[0]
	if diff := cmp.Diff(evidence, found.Evidence); diff != "" || found.Severity != forge.RiskMed {
		t.Errorf("%+v\n%s", audit, diff)
	}
	design := forge.AuditArea{Name: "design", Summary: "s (Left out, because no place that they name exists: 1.)"}
	if diff := cmp.Diff(design, audit.Areas[1]); diff != "" {
		t.Error(diff)
	}
	if got.Policy == nil || got.Policy.MaxReviewRetries != 5 || forge.As[*forge.Analysis](got.Output) != nil {
		t.Errorf("got %+v", got)
	}
	checkReading(t, set, p.calls[0], agent.RoleAudit, forge.StepAudit)
}

// checkReading makes sure that a call can only read, and is a conversation of its own.
func checkReading(t *testing.T, set *jobs.Set, call agent.Call, role agent.Role, step forge.Step) {
	t.Helper()
	repo, err := set.Get("shop")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Read", "Glob", "Grep"}, call.Tools); diff != "" || !call.ReadOnly || call.Role != role {
		t.Errorf("%s, read-only %v\n%s", call.Role, call.ReadOnly, diff)
	}
	if call.Limits.Wall != 10*time.Minute || call.Model != "sonnet" || len(call.Schema) == 0 || call.StateDir != repo.StateDir("tidy-"+string(step)) {
		t.Errorf("got %+v", call)
	}
}

func TestObserve(t *testing.T) {
	p := &parrot{answer: `{"patterns": [{"name": "n", "description": "d", "evidence": [
		{"type": "file", "ref": "DIR/a.txt"}, {"type": "history", "ref": "x-1"}]},
		{"name": "made up", "description": "d", "evidence": [{"type": "file", "ref": "a.txt"}, {"type": "file", "ref": "gone.txt"}]}],
		"observations": [{"content": "odd"}]}`}
	_, set, a := world(t, p)
	c := step(forge.StepObserve)
	c.Input = &forge.ObserveInput{
		Past:         []forge.PastRun{{IntentID: "x", Run: 1, Title: "Once", Outcome: forge.OutcomeFailed}},
		Observations: []forge.Observation{{ID: "o1", Content: "A trap."}},
	}
	got := analyze(t, a, c)
	out := forge.As[*forge.Observed](got.Output)
	if got.Failure() != nil || out == nil || got.Policy == nil || len(out.Patterns) != 1 || out.Patterns[0].Evidence[0].Ref != "a.txt" {
		t.Fatalf("%+v, %+v", got.Failure(), out)
	}
	if len(got.Observations) != 1 || got.Observations[0].Source != forge.StepObserve {
		t.Errorf("noticed %+v", got.Observations)
	}
	if told := p.calls[0].Prompt; !strings.Contains(told, `x-1 (failed): "Once"`) || !strings.Contains(told, "A trap.") {
		t.Errorf("told %s", told)
	}
	checkReading(t, set, p.calls[0], agent.RoleObserve, forge.StepObserve)

	p.answer = `{"patterns": [{"name": "n", "description": "d", "evidence": [{"type": "file", "ref": "a.txt"}, {"type": "file", "ref": "DIR/a.txt"}]}]}`
	got = analyze(t, a, c)
	out = forge.As[*forge.Observed](got.Output)
	if got.Failure() != nil || len(out.Patterns) > 0 || out.NothingFound != "of 1 patterns, none can be seen in two places that exist" {
		t.Errorf("%+v, %+v", got.Failure(), out)
	}
}

func TestArchitect(t *testing.T) {
	p := &parrot{answer: `{"type": "fix", "risk": "low", "tasks": [{"name": "a", "title": "A", "relevant_files": ["DIR/a.txt"]}],
		"observations": [{"content": "odd"}]}`}
	r, set, a := world(t, p)
	c := step(forge.StepArchitect)
	c.Input = &forge.AnalyzeInput{Insufficient: "Nobody says who calls a."}
	got := analyze(t, a, c)
	out := forge.As[*forge.Analysis](got.Output)
	if got.Failure() != nil || out.Base != string(r.Head("main")) || out.Policy == nil {
		t.Fatalf("%+v, %+v", got.Failure(), out)
	}
	if diff := cmp.Diff([]string{"a.txt"}, out.Tasks[0].RelevantFiles); diff != "" || got.Observations[0].Source != forge.StepArchitect {
		t.Errorf("%+v\n%s", got.Observations, diff)
	}
	call := p.calls[0]
	if !strings.Contains(call.Prompt, "Nobody says who calls a.") || !strings.HasPrefix(call.System, "You are the architect") ||
		strings.Contains(string(call.Schema), "insufficient") {
		t.Errorf("told %s\nto answer by %s", call.Prompt, call.Schema)
	}
	checkReading(t, set, call, agent.RoleArchitect, forge.StepArchitect)
}

// Parts of parts have an end, which the agent is told before it answers and after.
func TestPartsAreOfBoundedDepth(t *testing.T) {
	p := &parrot{answer: `{"type": "fix", "risk": "low", "tasks": [],
		"children": [{"name": "a", "title": "A", "body": "a"}, {"name": "b", "title": "B", "body": "b"}]}`}
	_, _, a := world(t, p)
	for _, s := range []forge.Step{forge.StepAnalyze, forge.StepArchitect} {
		c := step(s)
		c.Intent.Depth = 2
		got := analyze(t, a, c)
		if out := forge.As[*forge.Analysis](got.Output); got.Failure() != nil || len(out.Children) != 2 {
			t.Errorf("%s: %+v, %+v", s, got.Failure(), out)
		}
		call := p.calls[len(p.calls)-1]
		if call.Check != nil || !strings.Contains(call.System, "children") || !strings.Contains(string(call.Schema), "children") {
			t.Errorf("%s: told %s", s, call.System)
		}
		c.Intent.Depth = 3
		analyze(t, a, c)
		call = p.calls[len(p.calls)-1]
		if strings.Contains(call.System, "children") || strings.Contains(string(call.Schema), "children") {
			t.Errorf("%s: told %s", s, call.System)
		}
		if err := call.Check([]byte(p.answer)); err == nil || !strings.Contains(err.Error(), "taken apart any further") {
			t.Errorf("%s: %v", s, err)
		}
		if err := call.Check([]byte(`{"nothing_to_do": "x"}`)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestRecipesDoNotLook(t *testing.T) {
	_, _, a := world(t)
	for _, s := range []forge.Step{forge.StepAudit, forge.StepObserve} {
		c := step(s)
		c.Intent.Agent = "recipe"
		got := analyze(t, a, c)
		want := "a recipe cannot " + string(s) + ": set agent, or roles.analyze, in pfl-forge.yaml"
		if got.Failure() == nil || got.Failure().Reason != forge.FailConfig || !strings.Contains(got.Failure().Message, want) || got.Policy != nil {
			t.Errorf("%s: %+v", s, got.Failure())
		}
	}
}
