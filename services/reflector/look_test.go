package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/services/reflector"
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
	return agent.Outcome{Session: c.Session.ID, Answer: []byte(strings.ReplaceAll(p.answer, "DIR", c.Dir))}, nil
}

func world(t *testing.T, files map[string]string, others ...agent.Agent) (gittest.Repo, *reflector.Reflector) {
	t.Helper()
	r := gittest.New(t, files)
	return r, reflector.New(repotest.Local(t, r.Dir, others...))
}

func command(step forge.Step) forge.Command {
	return forge.Command{
		BudgetUSD: 5,
		To:        forge.Key{Project: repotest.Project, Intent: "tidy"},
		Attempt:   forge.Attempt{Step: step, Number: 1, Claim: 1},
		Intent:    forge.Intent{ID: "tidy", Project: repotest.Project, Settings: forge.Settings{Title: "Tidy up", Body: "Please."}},
		Session:   "00000000-0000-4000-8000-000000000000",
	}
}

func do(t *testing.T, r *reflector.Reflector, c forge.Command) forge.Result {
	t.Helper()
	for _, h := range r.Handlers() {
		if h.Step == c.Attempt.Step {
			return h.Do(t.Context(), c, func(forge.Progress) {})
		}
	}
	t.Fatalf("nobody does %s", c.Attempt.Step)
	return forge.Result{}
}

func checkReading(t *testing.T, call agent.Call, role agent.Role) {
	t.Helper()
	if diff := cmp.Diff([]string{"Read", "Glob", "Grep"}, call.Tools); diff != "" || !call.ReadOnly || call.Role != role {
		t.Errorf("%s, read-only %v\n%s", call.Role, call.ReadOnly, diff)
	}
	if call.Limits.Wall != 10*time.Minute || call.Model != "sonnet" || len(call.Schema) == 0 || call.Session.Resume {
		t.Errorf("got %+v", call)
	}
}

func TestReflect(t *testing.T) {
	p := &parrot{answer: `{"proposals": [{"title": "Test a", "body": "See DIR/a.txt:1.", "type": "test", "risk": "low"}],
		"observations": [{"content": "odd", "evidence": [{"type": "file", "ref": "DIR/a.txt:1"}]}]}`}
	_, r := world(t, map[string]string{"a.txt": "a\n", "pfl-forge.yaml": "reflection: {proposals_a_time: 3}\n"}, p)
	c := command(forge.StepReflect)
	c.Intent.Recipe = "format" // the project's agent reflects all the same
	c.Input = &forge.ReflectInput{
		History:      &forge.History{IntentID: "tidy", Run: 1, Outcome: forge.OutcomeSuccess, Title: "Tidy up"},
		Observations: []forge.Observation{{ID: "o1", Content: "A trap."}, {ID: "o2", Content: strings.Repeat("x", 5000)}},
		Proposed:     []forge.Proposal{{ID: "old", Title: "Rewrite it all", Status: forge.StatusRejected}},
	}
	got := do(t, r, c)
	want := forge.Result{
		Agent: "claude", Session: c.Session,
		Output: &forge.Reflection{
			Proposals: []forge.Intent{{Settings: forge.Settings{Title: "Test a", Body: "See a.txt:1.", Type: "test", Risk: forge.RiskLow}}},
			Read:      []string{"o1", "o2"},
		},
		Observations: []forge.Observation{{
			Content: "odd", Source: forge.StepReflect, IntentID: "tidy", Evidence: []forge.Evidence{{Type: forge.EvidenceFile, Ref: "a.txt:1"}},
		}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(forge.Observation{}, "CreatedAt"), cmpopts.IgnoreFields(forge.Result{}, "Executor")); diff != "" {
		t.Error(diff)
	}
	checkReading(t, p.calls[0], agent.RoleReflect)
	for _, told := range []string{"at most 3.", `"o1"`, "A trap.", "tidy-1 (success)", `- "Rewrite it all" (rejected)`} {
		if !strings.Contains(p.calls[0].Prompt, told) {
			t.Errorf("%q was not told:\n%s", told, p.calls[0].Prompt)
		}
	}
}

// A title in another script comes with letters that an id can begin with.
func TestReflectSpellsTitles(t *testing.T) {
	p := &parrot{answer: `{"proposals": [{"title": "変更を試す", "body": "b", "type": "test", "risk": "low"},
		{"title": "🚀", "body": "b", "type": "test", "risk": "low"}]}`}
	_, r := world(t, map[string]string{"a.txt": "a\n"}, p)
	c := command(forge.StepReflect)
	c.Input = &forge.ReflectInput{Observations: []forge.Observation{{ID: "o1", Content: "A trap."}}}
	got := do(t, r, c)
	want := []forge.Intent{
		{ID: "bian-geng-woshi-su", Settings: forge.Settings{Title: "変更を試す", Body: "b", Type: "test", Risk: forge.RiskLow}},
		{Settings: forge.Settings{Title: "🚀", Body: "b", Type: "test", Risk: forge.RiskLow}},
	}
	if diff := cmp.Diff(want, forge.As[*forge.Reflection](got.Output).Proposals); diff != "" {
		t.Error(diff)
	}
}

// What there is no room for is not read, and so left for the next reflection.
func TestReflectReadsWhatItIsShown(t *testing.T) {
	p := &parrot{answer: `{"proposals": []}`}
	_, r := world(t, map[string]string{"a.txt": "a\n"}, p)
	c := command(forge.StepReflect)
	in := &forge.ReflectInput{}
	c.Input = in
	for i := range 300 {
		in.Observations = append(in.Observations, forge.Observation{ID: fmt.Sprintf("o-%d-", i), Content: strings.Repeat("é", 1000)})
	}
	got := do(t, r, c)
	if out := forge.As[*forge.Reflection](got.Output); got.Failure() != nil || len(out.Read) != 49 || out.Read[48] != "o-48-" {
		t.Fatalf("%+v, %+v", got.Failure(), out)
	}
	if told := p.calls[0].Prompt; !strings.Contains(told, "o-48-") || strings.Contains(told, "o-49-") {
		t.Error("what was read is not what was shown")
	}
}

// No model is asked about what none did.
func TestReflectOnNothing(t *testing.T) {
	p := &parrot{answer: `{"proposals": []}`}
	_, r := world(t, map[string]string{"a.txt": "a\n"}, p)
	c := command(forge.StepReflect)
	step := func(agent string) forge.History {
		return forge.History{IntentID: "tidy", Run: 1, StepResults: []forge.StepRecord{{Step: forge.StepAnalyze, Agent: agent}, {Step: forge.StepRebase}}}
	}
	byRecipe, byModel := step("recipe"), step("codex")
	c.Input = &forge.ReflectInput{History: &byRecipe}
	if got := do(t, r, c); got.Failure() != nil || forge.As[*forge.Reflection](got.Output) == nil || got.Agent != "" || len(p.calls) != 0 {
		t.Errorf("%+v, %d calls", got, len(p.calls))
	}
	c.Input = &forge.ReflectInput{History: &byRecipe, Histories: []forge.History{byModel}}
	if got := do(t, r, c); got.Failure() != nil || got.Agent != "claude" || len(p.calls) != 1 {
		t.Errorf("%+v, %d calls", got, len(p.calls))
	}
}

// A run whose analysis failed is asked about before anybody has read that reflection is off.
func TestReflectOff(t *testing.T) {
	p := &parrot{answer: `{"proposals": []}`}
	_, r := world(t, map[string]string{"pfl-forge.yaml": "reflection: {enabled: false}\n"}, p)
	c := command(forge.StepReflect)
	c.Input = &forge.ReflectInput{
		History:      &forge.History{IntentID: "tidy", Run: 1, StepResults: []forge.StepRecord{{Step: forge.StepAnalyze, Agent: "codex"}}},
		Observations: []forge.Observation{{ID: "o1", Content: "A trap."}},
	}
	got := do(t, r, c)
	if out := forge.As[*forge.Reflection](got.Output); got.Failure() != nil || out == nil || len(out.Read) != 0 || len(p.calls) != 0 {
		t.Errorf("%+v, %d calls", got, len(p.calls))
	}
}

const guide = "---\nname: adding-a-key\ndescription: \"When a key is added\"\n---\n# Keys\n"

func TestAbstract(t *testing.T) {
	p := &parrot{answer: `{"skills": [{"name": "new-one", "description": "d", "body": "# Do"}]}`}
	repo, r := world(t, map[string]string{
		"a.txt": "a\n", ".claude/skills/adding-a-key/SKILL.md": guide, ".claude/skills/folded/SKILL.md": "---\ndescription: >\n  In two\n  lines.\n---\n",
		".claude/skills/bare/SKILL.md": "# No front matter\ndescription: x\n", ".claude/skills/empty/x": "x", ".claude/skills/README.md": "x",
	}, p)
	c := command(forge.StepAbstract)
	c.Input = &forge.AbstractInput{
		Patterns: []forge.Pattern{{Name: "Keys", Description: "They come back.", Evidence: []forge.Evidence{{Type: forge.EvidenceFile, Ref: "a.txt:1"}}}},
	}
	got := do(t, r, c)
	want := &forge.Abstraction{Skills: []forge.Skill{{Name: "new-one", Description: "d", Body: "# Do"}}}
	if diff := cmp.Diff(want, forge.As[*forge.Abstraction](got.Output)); diff != "" || got.Failure() != nil {
		t.Fatalf("%+v\n%s", got.Failure(), diff)
	}
	call := p.calls[0]
	checkReading(t, call, agent.RoleAbstract)
	told := `# Skills that there are

- "adding-a-key": "When a key is added"
- "bare"
- "empty"
- "folded": "In two"
`
	if !strings.Contains(call.Prompt, told) || !strings.Contains(call.Prompt, "They come back.") || !strings.Contains(call.Prompt, "file a.txt:1") {
		t.Errorf("told %s", call.Prompt)
	}
	err := call.Check([]byte(strings.Replace(p.answer, "new-one", "bare", 1)))
	if err == nil || !strings.Contains(err.Error(), `skills[0].name is "bare", and there is such a skill`) {
		t.Errorf("got %v", err)
	}
	if err := call.Check([]byte(p.answer)); err != nil {
		t.Error(err)
	}
	if got := repo.Git("status", "--porcelain", "--", ".claude"); got != "" {
		t.Error(got)
	}
}

// A link is followed nowhere but within the checkout.
func TestSkillsStayInside(t *testing.T) {
	p := &parrot{answer: `{"skills": [{"name": "new-one", "description": "d", "body": "# Do"}]}`}
	repo, r := world(t, map[string]string{"a.txt": "a\n"}, p)
	secret := t.TempDir()
	dir := filepath.Join(repo.Dir, ".claude", "skills", "real")
	if err := errors.Join(
		os.WriteFile(filepath.Join(secret, "SKILL.md"), []byte("---\ndescription: stolen\n---\n"), 0o600),
		os.MkdirAll(dir, 0o700),
		os.Symlink(filepath.Join(secret, "SKILL.md"), filepath.Join(dir, "SKILL.md")),
		os.Symlink(secret, filepath.Join(filepath.Dir(dir), "away")),
	); err != nil {
		t.Fatal(err)
	}
	repo.Git("add", ".claude")
	repo.Git("commit", "-q", "-m", "links")
	got := do(t, r, command(forge.StepAbstract))
	if got.Failure() != nil {
		t.Fatal(got.Failure())
	}
	if strings.Contains(p.calls[0].Prompt, "stolen") || !strings.Contains(p.calls[0].Prompt, `- "real"`) {
		t.Errorf("told %s", p.calls[0].Prompt)
	}
}

func TestRecipesMakeNoSkills(t *testing.T) {
	_, r := world(t, map[string]string{"pfl-forge.yaml": "agent: recipe\n"})
	got := do(t, r, command(forge.StepAbstract))
	const want = "a recipe cannot abstract: set agent, or roles.reflect, in"
	if got.Failure() == nil || got.Failure().Reason != forge.FailConfig || !strings.Contains(got.Failure().Message, want) {
		t.Errorf("got %+v", got.Failure())
	}
}
