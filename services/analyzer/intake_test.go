package analyzer_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

func goal(criteria ...string) forge.Command {
	c := step(forge.StepIntake)
	c.Intent.Criteria = criteria
	return c
}

func TestIntake(t *testing.T) {
	p := &parrot{answer: `{"status": "accepted", "task": "Mend DIR/a.txt.", "criteria": ["a.txt holds \"b\"", "b.txt is  short"], "type": "fix", "risk": "med",
		"complexity": "low", "relevant_files": ["DIR/a.txt", "../x"], "observations": [{"content": "odd", "evidence": [{"type": "file", "ref": "DIR/a.txt"}]}]}`}
	_, set, a := world(t, p)
	got := analyze(t, a, goal(`a.txt holds "b"`, "b.txt\nis short"))
	want := &forge.Intake{
		Task: "Mend a.txt.", Criteria: []string{`a.txt holds "b"`, "b.txt\nis short"},
		Type: "fix", Risk: forge.RiskMed, Complexity: forge.ComplexityLow, RelevantFiles: []string{"a.txt"},
	}
	if diff := cmp.Diff(want, forge.As[*forge.Intake](got.Output)); diff != "" || got.Failure() != nil {
		t.Errorf("%+v\n%s", got.Failure(), diff)
	}
	if got.Policy == nil || got.Policy.MaxReviewRetries != 5 {
		t.Errorf("got %+v", got)
	}
	if len(got.Observations) != 1 || got.Observations[0].Source != forge.StepIntake || got.Observations[0].Evidence[0].Ref != "a.txt" {
		t.Errorf("noticed %+v", got.Observations)
	}
	checkReading(t, set, p.calls[0], agent.RoleIntake, forge.StepIntake)
	if err := p.calls[0].Check([]byte(strings.ReplaceAll(p.answer, "short", "long"))); err == nil || !strings.Contains(err.Error(), "criteria lacks") {
		t.Errorf("a criterion of the request is gone: %v", err)
	}
}

// A recipe has no criteria to make, and says so to a person.
func TestIntakeNeedsAModel(t *testing.T) {
	r, _, a := world(t)
	r.Commit("recipes only", map[string]string{"pfl-forge.yaml": "agent: recipe\n"})
	got := analyze(t, a, goal("It is done"))
	failure := got.Failure()
	if failure == nil || failure.Reason != forge.FailConfig || !strings.Contains(failure.Message, "roles.analyze") || forge.As[*forge.Intake](got.Output) != nil {
		t.Errorf("%+v", got)
	}
	c := goal("It is done")
	c.Input = &forge.AnalyzeInput{PolicyOnly: true}
	if got := analyze(t, a, c); got.Failure() != nil || got.Policy == nil || got.Agent != "" {
		t.Errorf("%+v", got)
	}
}

// The real CLI asks, goes on in the same session when it is answered, and mends an answer
// from which a criterion of the person is gone.
func TestClaudeTakesAGoalOn(t *testing.T) {
	accepted := func(notes string, criteria ...string) object {
		return object{
			"status": "accepted", "task": "Mend a.", "criteria": criteria, "validation_notes": notes, "type": "fix", "risk": "low", "complexity": "low",
		}
	}
	cli, model := repotest.Claude(t, agenttest.Steps(
		agenttest.UseIn("Read", func(dir string) any { return object{"file_path": filepath.Join(dir, "a.txt")} }),
		agenttest.Answer(object{
			"status": "needs_clarification", "task": "", "criteria": []string{}, "type": "fix", "risk": "low",
			"clarification_questions": []object{{"question": "How short?", "context": "It has one line.", "suggested_answers": []string{"Empty"}}},
		}),
		agenttest.Answer(accepted("", "a.txt is empty")),
		agenttest.Answer(accepted("Short was not a number.", "a.txt is empty", "All tests pass")),
	))
	_, _, a := world(t, cli)
	c := goal("a.txt is short", "All tests pass")
	first := analyze(t, a, c)
	want := []forge.Clarification{{Question: "How short?", Context: "It has one line.", SuggestedAnswers: []string{"Empty"}}}
	if first.Failure() != nil || first.Session == "" {
		t.Fatalf("%+v", first.Failure())
	}
	if diff := cmp.Diff(&forge.Intake{Clarifications: want, Type: "fix", Risk: forge.RiskLow}, forge.As[*forge.Intake](first.Output)); diff != "" {
		t.Error(diff)
	}
	answer := "Empty."
	c.Attempt.Number, c.Session, c.Resume = 2, first.Session, true
	c.Intent.Clarifications = []forge.Clarification{{Question: "How short?", Answer: &answer}}
	second := analyze(t, a, c)
	taken := &forge.Intake{
		Task: "Mend a.", Criteria: []string{"a.txt is empty", "All tests pass"}, Notes: "Short was not a number.",
		Type: "fix", Risk: forge.RiskLow, Complexity: forge.ComplexityLow,
	}
	if diff := cmp.Diff(taken, forge.As[*forge.Intake](second.Output)); diff != "" || second.Failure() != nil || second.Session != first.Session {
		t.Fatalf("%+v\n%s", second.Failure(), diff)
	}
	requests := model.Requests("model")
	if first := requests[0]; !strings.Contains(first.System, "You take on goals") || !strings.Contains(first.LastUser, "a.txt is short") {
		t.Errorf("told %s", first.LastUser)
	}
	last := string(requests[len(requests)-1].Body)
	if !strings.Contains(last, "Empty.") || !strings.Contains(last, "has 1 criteria, and the request has 2") {
		t.Errorf("the session did not go on: %s", last)
	}
	for _, tool := range requests[0].Tools {
		if tool == "Bash" || tool == "Write" || tool == "Edit" {
			t.Errorf("it has %s", tool)
		}
	}
}
