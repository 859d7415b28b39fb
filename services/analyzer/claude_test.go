package analyzer_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

type object = map[string]any

// The real CLI reads, asks, and goes on in the same session when it is answered.
func TestClaudeAsksAndGoesOn(t *testing.T) {
	cli, model := repotest.Claude(t, agenttest.Steps(
		agenttest.UseIn("Read", func(dir string) any { return object{"file_path": filepath.Join(dir, "a.txt")} }),
		agenttest.Answer(object{
			"type": "fix", "risk": "low", "tasks": []object{}, "clarifications": []object{{"question": "Which one?"}},
		}),
		agenttest.Answer(object{"type": "fix", "risk": "low", "tasks": []object{{
			"name": "a", "title": "Mend a", "plan": "Do it.", "relevant_files": []string{"a.txt"}, "complexity": "high",
		}}}),
	))
	r, _, a := world(t, cli)
	c := command("")
	first := analyze(t, a, c)
	if first.Failure() != nil {
		t.Fatalf("%+v", first.Failure())
	}
	if diff := cmp.Diff([]forge.Clarification{{Question: "Which one?"}}, forge.As[*forge.Analysis](first.Output).Clarifications); diff != "" {
		t.Error(diff)
	}
	if first.Session == "" || first.Model == "" || first.Usage.InputTokens == 0 || first.Agent != "claude" {
		t.Errorf("got %+v", first)
	}

	answer := "The first."
	c.Attempt.Number, c.Session, c.Resume = 2, first.Session, true
	c.Intent.Clarifications = []forge.Clarification{{Question: "Which one?", Answer: &answer}}
	second := analyze(t, a, c)
	if second.Failure() != nil || len(forge.As[*forge.Analysis](second.Output).Tasks) != 1 || second.Session != first.Session {
		t.Fatalf("%+v, %+v", second, second.Failure())
	}
	requests := model.Requests("model")
	if last := requests[len(requests)-1]; !strings.Contains(last.LastUser, "The first.") || !strings.Contains(string(last.Body), "Tidy up") {
		t.Errorf("the session did not go on: %s", last.LastUser)
	}
	if !strings.Contains(requests[0].System, "You plan changes") || !strings.Contains(requests[1].LastResult, "a") {
		t.Errorf("system %q, Read gave %q", requests[0].System, requests[1].LastResult)
	}
	if got := r.Git("status", "--porcelain", "--", "a.txt"); got != "" {
		t.Error(got)
	}
}

// Where the session is gone, a new one of the same name has everything that was said.
func TestClaudeLostSession(t *testing.T) {
	cli, model := repotest.Claude(t, agenttest.Steps(agenttest.Answer(object{"type": "fix", "risk": "low", "tasks": []object{}, "nothing_to_do": "done"})))
	_, _, a := world(t, cli)
	answer := "The first."
	c := command("")
	c.Session, c.Resume = "00000000-0000-4000-8000-000000000000", true
	c.Intent.Clarifications = []forge.Clarification{{Question: "Which one?", Answer: &answer}}
	got := analyze(t, a, c)
	if got.Failure() != nil || got.Session != c.Session || forge.As[*forge.Analysis](got.Output).NothingToDo != "done" {
		t.Fatalf("got %+v, %+v", got, got.Failure())
	}
	if said := model.Requests("model")[0].LastUser; !strings.Contains(said, "Tidy up") || !strings.Contains(said, "The first.") {
		t.Errorf("the agent was told %s", said)
	}
}

// The real CLI says that it takes a deeper look, an architect takes it, in a
// conversation of its own, and mends an answer that is two things at once.
func TestClaudeArchitect(t *testing.T) {
	parts := []object{
		{"name": "api", "title": "An API", "body": "All.", "type": "feature", "risk": "low"},
		{"name": "page", "title": "A page", "body": "All.", "type": "feature", "risk": "low", "depends_on": []string{"api"}},
	}
	task := object{"name": "a", "title": "Mend a", "plan": "Do it.", "relevant_files": []string{"a.txt"}, "complexity": "low"}
	cli, model := repotest.Claude(t, agenttest.Steps(
		agenttest.Answer(object{"type": "fix", "risk": "low", "tasks": []object{}, "insufficient": "No idea who calls it."}),
		agenttest.UseIn("Grep", func(dir string) any { return object{"pattern": "a", "path": dir} }),
		agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{task}, "children": parts}),
		agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{}, "children": parts}),
	))
	_, _, a := world(t, cli)
	first := analyze(t, a, command(""))
	shallow := forge.As[*forge.Analysis](first.Output)
	if first.Failure() != nil || shallow.Insufficient != "No idea who calls it." {
		t.Fatalf("%+v, %+v", first.Failure(), shallow)
	}
	c := step(forge.StepArchitect)
	c.Input = &forge.AnalyzeInput{Insufficient: shallow.Insufficient}
	got := analyze(t, a, c)
	out := forge.As[*forge.Analysis](got.Output)
	if got.Failure() != nil || len(out.Children) != 2 || out.Children[1].DependsOn[0] != "api" || got.Session == first.Session {
		t.Fatalf("%+v, %+v", got.Failure(), out)
	}
	requests := model.Requests("model")
	if asked := requests[1]; !strings.Contains(asked.System, "You are the architect") || !strings.Contains(asked.LastUser, "No idea who calls it.") {
		t.Errorf("told %s", asked.LastUser)
	}
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "there are tasks and children") {
		t.Errorf("it was not asked to correct its answer: %s", last.LastUser)
	}
	for _, r := range requests {
		for _, tool := range r.Tools {
			if tool == "Bash" || tool == "Write" || tool == "Edit" {
				t.Errorf("it has %s", tool)
			}
		}
	}
}

func TestClaudeAuditsAndObserves(t *testing.T) {
	area := func(name string, findings ...object) object {
		return object{"name": name, "summary": "Looked.", "findings": append([]object{}, findings...)}
	}
	evidence := []object{{"type": "file", "ref": "a.txt:1"}}
	cli, _ := repotest.Claude(t, agenttest.Steps(
		agenttest.UseIn("Read", func(dir string) any { return object{"file_path": filepath.Join(dir, "a.txt")} }),
		agenttest.Answer(object{"summary": "Fine.", "areas": []object{
			area("tests", object{"title": "None", "detail": "Of a.", "severity": "low", "evidence": evidence}),
			area("design"), area("conventions"), area("debt"), area("documentation"),
		}}),
		agenttest.Answer(object{"patterns": []object{{"name": "n", "description": "d", "evidence": evidence}}}),
		agenttest.Answer(object{"patterns": []object{}, "nothing_found": "Seen once."}),
	))
	_, _, a := world(t, cli)
	got := analyze(t, a, step(forge.StepAudit))
	audit := forge.As[*forge.Audit](got.Output)
	if got.Failure() != nil || audit.Summary != "Fine." || len(got.Observations) != 1 || got.Observations[0].Source != forge.StepAudit {
		t.Errorf("%+v, %+v", got, got.Failure())
	}
	got = analyze(t, a, step(forge.StepObserve))
	observed := forge.As[*forge.Observed](got.Output)
	if got.Failure() != nil || observed.NothingFound != "Seen once." || len(observed.Patterns) > 0 {
		t.Errorf("%+v, %+v", got, got.Failure())
	}
}
