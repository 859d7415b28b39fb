package reflector_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

type object = map[string]any

// The real CLI looks at the code before it proposes, and mends a proposal that is none.
func TestClaudeReflects(t *testing.T) {
	proposal := func(title string) object {
		return object{"proposals": []object{{"title": title, "body": "See a.txt:1.", "type": "test", "risk": "low"}}}
	}
	cli, model := repotest.Claude(t, agenttest.Steps(
		agenttest.UseIn("Read", func(dir string) any { return object{"file_path": filepath.Join(dir, "a.txt")} }),
		agenttest.Answer(proposal("Two\nlines")),
		agenttest.Answer(proposal("One line")),
	))
	_, r := world(t, map[string]string{"a.txt": "what is noticed\n"}, cli)
	c := command(forge.StepReflect)
	c.Input = &forge.ReflectInput{Observations: []forge.Observation{{ID: "o1", Content: "a is odd."}}}
	got := do(t, r, c)
	if got.Failure() != nil {
		t.Fatal(got.Failure())
	}
	want := &forge.Reflection{
		Proposals: []forge.Intent{{Settings: forge.Settings{Title: "One line", Body: "See a.txt:1.", Type: "test", Risk: forge.RiskLow}}}, Read: []string{"o1"},
	}
	if diff := cmp.Diff(want, forge.As[*forge.Reflection](got.Output)); diff != "" || got.Agent != "claude" || got.Usage.InputTokens == 0 {
		t.Errorf("%+v\n%s", got, diff)
	}
	requests := model.Requests("model")
	if first := requests[0]; !strings.Contains(first.System, "You look back") || !strings.Contains(first.LastUser, "a is odd.") {
		t.Errorf("told %s", first.LastUser)
	}
	if !strings.Contains(requests[1].LastResult, "what is noticed") {
		t.Errorf("Read gave %q", requests[1].LastResult)
	}
	for _, tool := range []string{"Bash", "Write", "Edit"} {
		if slices.Contains(requests[0].Tools, tool) {
			t.Errorf("it has %s", tool)
		}
	}
}

// A skill that there is already is refused, and the answer mended.
func TestClaudeAbstracts(t *testing.T) {
	skill := func(name string) object {
		return object{"skills": []object{{"name": name, "description": "When keys are added.", "body": "# Keys"}}}
	}
	cli, model := repotest.Claude(t, agenttest.Steps(agenttest.Answer(skill("adding-a-key")), agenttest.Answer(skill("removing-a-key"))))
	_, r := world(t, map[string]string{".claude/skills/adding-a-key/SKILL.md": guide}, cli)
	c := command(forge.StepAbstract)
	c.Input = &forge.AbstractInput{Patterns: []forge.Pattern{{Name: "Keys", Description: "They go."}}}
	got := do(t, r, c)
	want := &forge.Abstraction{Skills: []forge.Skill{{Name: "removing-a-key", Description: "When keys are added.", Body: "# Keys"}}}
	if diff := cmp.Diff(want, forge.As[*forge.Abstraction](got.Output)); diff != "" || got.Failure() != nil {
		t.Fatalf("%+v\n%s", got.Failure(), diff)
	}
	requests := model.Requests("model")
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "there is such a skill") {
		t.Errorf("it was not asked to correct its answer: %s", last.LastUser)
	}
}
