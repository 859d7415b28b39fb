package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// areas are an audit's, of which some were looked at in vain.
func areas(names ...string) string {
	var list []string
	for _, n := range names {
		list = append(list, fmt.Sprintf(`{"name": %q, "summary": "fine", "findings": []}`, n))
	}
	return strings.Join(list, ", ")
}

const finding = `{"title": "No test\nof x", "detail": " It breaks. ", "severity": "high", "evidence": [
	{"type": "file", "ref": " a.go:1 "}, {"type": "file", "ref": "a.go:1"}, {"type": "decision", "ref": ""}]}`

func TestParseAudit(t *testing.T) {
	got, err := agent.ParseAudit([]byte(`{"summary": " Mostly fine. ", "areas": [` +
		areas("documentation", "debt", "design", "conventions") + `, {"name": "tests", "summary": "s", "findings": [` + finding + `]}]}`))
	want := forge.Audit{Summary: "Mostly fine.", Areas: []forge.AuditArea{
		{Name: "tests", Summary: "s", Findings: []forge.Finding{{
			Title: "No test of x", Detail: "It breaks.", Severity: forge.RiskHigh,
			Evidence: []forge.Evidence{{Type: forge.EvidenceFile, Ref: "a.go:1"}},
		}}},
		{Name: "design", Summary: "fine"},
		{Name: "conventions", Summary: "fine"},
		{Name: "debt", Summary: "fine"},
		{Name: "documentation", Summary: "fine"},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestParseObserved(t *testing.T) {
	got, obs, err := agent.ParseObserved([]byte(`{"patterns": [{"name": "n", "description": "d", "evidence": [
		{"type": "history", "ref": "fix-1"}, {"type": "file", "ref": "a.go"}]}], "observations": [{"content": "o"}]}`))
	want := forge.Observed{Patterns: []forge.Pattern{{Name: "n", Description: "d", Evidence: []forge.Evidence{
		{Type: forge.EvidenceHistory, Ref: "fix-1"}, {Type: forge.EvidenceFile, Ref: "a.go"},
	}}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(obs) != 1 || obs[0].Source != forge.StepObserve {
		t.Errorf("%v, %+v\n%s", err, obs, diff)
	}
	got, _, err = agent.ParseObserved([]byte(`{"patterns": [], "nothing_found": "young"}`))
	if err != nil || got.NothingFound != "young" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestParseAbstraction(t *testing.T) {
	got, obs, err := agent.ParseAbstraction([]byte(`{"skills": [{"name": "adding-a-key", "description": " When a key is added. ", "body": "# Keys\n\nDo.\n"}]}`))
	want := forge.Abstraction{Skills: []forge.Skill{{Name: "adding-a-key", Description: "When a key is added.", Body: "# Keys\n\nDo."}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || obs != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestParseReflection(t *testing.T) {
	got, obs, err := agent.ParseReflection([]byte(`{"proposals": [{"title": "Test x", "body": "It breaks.", "type": "test", "risk": "low"}],
		"observations": [{"content": "o"}]}`))
	want := []forge.Intent{{Settings: forge.Settings{Title: "Test x", Body: "It breaks.", Type: "test", Risk: forge.RiskLow}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(obs) != 1 || obs[0].Source != forge.StepReflect {
		t.Errorf("%v, %+v\n%s", err, obs, diff)
	}
	if got, _, err := agent.ParseReflection([]byte(`{"proposals": []}`)); err != nil || got != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLooksRefused(t *testing.T) {
	audit := func(s string) error { _, err := agent.ParseAudit([]byte(s)); return err }
	observed := func(s string) error { _, _, err := agent.ParseObserved([]byte(s)); return err }
	abstraction := func(s string) error { _, _, err := agent.ParseAbstraction([]byte(s)); return err }
	reflection := func(s string) error { _, _, err := agent.ParseReflection([]byte(s)); return err }
	all := areas(agent.AuditAreas()...)
	with := func(old, text string) string {
		return `{"summary": "s", "areas": [{"name": "tests", "summary": "s", "findings": [` + strings.Replace(finding, old, text, 1) + `]}]}`
	}
	skill := func(name, description, body string) string {
		return fmt.Sprintf(`{"skills": [{"name": %q, "description": %q, "body": %q}]}`, name, description, body)
	}
	proposal := `{"title": "t", "body": "b", "type": "fix", "risk": "low"}`
	for _, tt := range []struct {
		parse    func(string) error
		in, want string
	}{
		{audit, `{"areas": [` + all + `]}`, "summary is empty"},
		{audit, `{"summary": "s", "areas": [` + areas("tests", "design", "debt", "documentation") + `]}`, "areas lacks conventions"},
		{audit, `{"summary": "s", "areas": [` + areas("tests", "tests") + `]}`, `areas[1].name is "tests"; must be each of tests, design`},
		{audit, `{"summary": "s", "areas": [` + areas("style") + `]}`, `areas[0].name is "style"`},
		{audit, `{"summary": "s", "areas": [{"name": "tests"}]}`, "areas[0].summary is empty"},
		{audit, with(`"high"`, `"bad"`), `areas[0].findings[0].severity is "bad"`},
		{audit, with(`No test\nof x`, ``), "areas[0].findings[0].title is empty"},
		{audit, with(` It breaks. `, ` `), "areas[0].findings[0].detail is empty"},
		{audit, with(`a.go:1`, ``), "areas lacks design"}, // it still has a place
		{audit, strings.ReplaceAll(with("", ""), `a.go:1`, ``), "areas[0].findings[0].evidence names 0 places; at least 1 are needed"},
		{audit, with(`"file"`, `"gut"`), `areas[0].findings[0].evidence[0].type is "gut"`},
		{observed, `{"patterns": []}`, "nothing_found does not say why"},
		{observed, `{"patterns": [{}], "nothing_found": "x"}`, "there are patterns, and nothing_found"},
		{observed, `{"patterns": [{"name": "n"}]}`, "patterns[0].name or .description is empty"},
		{
			observed, `{"patterns": [{"name": "n", "description": "d", "evidence": [{"type": "file", "ref": "a"}, {"type": "file", "ref": " a"}]}]}`,
			"patterns[0].evidence names 1 places; at least 2 are needed",
		},
		{observed, `{"patterns": [` + strings.Repeat("{}, ", 30) + `{}]}`, "has 31 patterns"},
		{abstraction, `{"skills": []}`, "nothing_new does not say why"},
		{abstraction, `{"skills": [{"name": "a", "description": "d", "body": "b"}], "nothing_new": "all is known"}`, "nothing_new says"},
		{abstraction, skill("Adding", "d", "b"), `skills[0].name is "Adding"`},
		{abstraction, skill("../x", "d", "b"), `skills[0].name is "../x"`},
		{abstraction, skill("a", " ", "b"), "skills[0].description is empty"},
		{abstraction, skill("a", "x\ny", "b"), "skills[0].description must be one line"},
		{abstraction, skill("a", strings.Repeat("x", 501), "b"), "at most 500"},
		{abstraction, skill("a", "d", ""), "skills[0].body is empty"},
		{abstraction, skill("a", "d", "---\nname: b\n---\n"), "leave it out"},
		{abstraction, skill("a", "d", strings.Repeat("x", 64<<10+1)), "at most 65536"},
		{abstraction, `{"skills": [{"name": "a", "description": "d", "body": "b"}, {"name": "a", "description": "d", "body": "b"}]}`, `two skills are named "a"`},
		{abstraction, `{"skills": [` + strings.Repeat("{}, ", 30) + `{}]}`, "has 31 skills"},
		{reflection, `{"proposals": [{"title": "t", "body": "b", "risk": "low"}]}`, "proposals[0] needs a type and a risk"},
		{reflection, `{"proposals": [` + proposal + `, {"title": "", "body": "b"}]}`, "proposals[1].title is empty"},
		{reflection, `{"proposals": [` + strings.Repeat(proposal+", ", 50) + proposal + `]}`, "has 51 proposals"},
	} {
		err := tt.parse(tt.in)
		if f, ok := errors.AsType[*agent.Failure](err); !ok || f.Reason != forge.FailInvalidOutput || !strings.Contains(f.Message, tt.want) {
			t.Errorf("%.150s:\n got %v\nwant ...%s", tt.in, err, tt.want)
		}
	}
}

// Why there is nothing is a reason in lists.
func TestReasonsForNothingAreBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	observed, _, err := agent.ParseObserved(fmt.Appendf(nil, `{"patterns": [], "nothing_found": "\u001b[2J%s"}`, long))
	if err != nil || len(observed.NothingFound) > 1000 || strings.Contains(observed.NothingFound, "\x1b") {
		t.Errorf("%v, %d bytes: %.20q", err, len(observed.NothingFound), observed.NothingFound)
	}
	made, _, err := agent.ParseAbstraction(fmt.Appendf(nil, `{"skills": [], "nothing_new": "\u001b[2J%s"}`, long))
	if err != nil || len(made.NothingNew) > 1000 || strings.Contains(made.NothingNew, "\x1b") {
		t.Errorf("%v, %d bytes: %.20q", err, len(made.NothingNew), made.NothingNew)
	}
}
