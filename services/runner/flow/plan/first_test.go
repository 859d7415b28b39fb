package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// Who has to be asked before an intent is analyzed, by its origin, its risk and the policy.
func TestAsksFirst(t *testing.T) {
	system := forge.Intent{Source: forge.SourceSystem, Origin: forge.Origin{System: "bot"}}
	reflected, scripted := system, system
	reflected.Source, scripted.Recipe = forge.SourceSystemReflection, "format"
	for _, test := range []struct {
		name   string
		in     forge.Intent
		gate   Gate
		policy forge.Policy
		want   string // what the reason holds; empty: nobody is asked
	}{
		{name: "of a person", in: forge.Intent{Source: forge.SourceHuman}},
		{name: "of a person, med", in: forge.Intent{Source: forge.SourceHuman}, gate: Gate{Declared: forge.RiskMed}},
		{name: "of a person, judged high", in: forge.Intent{Source: forge.SourceHuman}, gate: Gate{Judged: forge.RiskHigh}},
		{name: "of a person, high", in: forge.Intent{Source: forge.SourceHuman}, gate: Gate{Declared: forge.RiskHigh}, want: "high risk"},
		{name: "of a reflection", in: forge.Intent{Source: forge.SourceReflection}},
		{name: "of a system", in: system, want: `from "bot"`},
		{name: "of a trusted one", in: system, policy: forge.Policy{TrustedOrigins: []string{"bot"}}},
		{
			name: "of a trusted one, high", in: system, gate: Gate{Declared: forge.RiskHigh}, policy: forge.Policy{TrustedOrigins: []string{"bot"}},
			want: "high risk",
		},
		{name: "a reflection on it", in: reflected, policy: forge.Policy{TrustedOrigins: []string{"bot"}}, want: "reflection"},
		{name: "a child of an approved plan", in: system, gate: Gate{Vouched: true, Declared: forge.RiskHigh}},
		{name: "a recipe", in: scripted},
		{name: "a recipe, high", in: scripted, gate: Gate{Declared: forge.RiskHigh}},
		{name: "a recipe, never", in: scripted, policy: forge.Policy{AnalyzeBeforeApproval: "never"}, want: `from "bot"`},
		{name: "always", in: system, gate: Gate{Declared: forge.RiskHigh}, policy: forge.Policy{AnalyzeBeforeApproval: "always"}},
		{name: "a word that is not known", in: system, policy: forge.Policy{AnalyzeBeforeApproval: "maybe"}, want: `from "bot"`},
	} {
		why := test.gate.AsksFirst(&test.in, &test.policy)
		if (why == "") != (test.want == "") || !strings.Contains(why, test.want) {
			t.Errorf("%s: %q; want %q", test.name, why, test.want)
		}
	}
	// Approved is one text: every edit makes another one of it.
	g := Gate{Declared: forge.RiskHigh}
	g.Cleared = g.Text(&system)
	if why := g.AsksFirst(&system, &forge.Policy{}); why != "" {
		t.Errorf("what was approved is asked again: %s", why)
	}
	for name, edit := range map[string]func(*forge.Intent, *Gate){
		"title": func(in *forge.Intent, _ *Gate) { in.Title = "x" }, "body": func(in *forge.Intent, _ *Gate) { in.Body = "x" },
		"type": func(in *forge.Intent, _ *Gate) { in.Type = "audit" }, "risk": func(_ *forge.Intent, g *Gate) { g.Declared = forge.RiskLow },
	} {
		in, h := system, g
		edit(&in, &h)
		if h.AsksFirst(&in, &forge.Policy{}) == "" {
			t.Errorf("another %s is approved as well", name)
		}
	}
}

// The hash of a request is of all that whoever approves it is shown, and of
// nothing else: each part that differs makes another one.
func TestAllThatIsAskedIsShown(t *testing.T) {
	in := forge.Intent{Settings: forge.Settings{
		Title: "a title", Body: "a body", Type: "docs", Risk: forge.RiskLow, Recipe: "a recipe", Agent: "an agent", Criteria: []string{"one", "two"},
	}}
	g := Gate{Declared: forge.RiskHigh}
	shown := map[string]string{}
	for _, p := range g.Asked(&in) {
		shown[p.Name] = strings.Join(p.Texts(), ", ")
	}
	want := map[string]string{
		"title": "a title", "body": "a body", "type": "docs", "risk": "high", "recipe": "a recipe", "agent": "an agent", "criteria": "one, two",
	}
	if !maps.Equal(shown, want) {
		t.Errorf("shown is %v, want %v", shown, want)
	}
	if got := g.Text(&in); got != "c67d2a9355b3" {
		t.Errorf("the hash is %s: approvals in journals are of another one", got)
	}
	for name, edit := range map[string]func(*forge.Intent, *Gate){
		"title": func(in *forge.Intent, _ *Gate) { in.Title += "x" }, "body": func(in *forge.Intent, _ *Gate) { in.Body += "x" },
		"type": func(in *forge.Intent, _ *Gate) { in.Type += "x" }, "risk": func(_ *forge.Intent, g *Gate) { g.Declared = forge.RiskLow },
		"recipe": func(in *forge.Intent, _ *Gate) { in.Recipe += "x" }, "agent": func(in *forge.Intent, _ *Gate) { in.Agent += "x" },
		"criteria": func(in *forge.Intent, _ *Gate) { in.Criteria = []string{"one"} },
	} {
		other, h := in, g
		edit(&other, &h)
		if h.Text(&other) == g.Text(&in) {
			t.Errorf("another %s has the same hash", name)
		}
		if p := h.Asked(&other); !slices.ContainsFunc(p, func(p Part) bool { return p.Name == name && strings.Join(p.Texts(), ", ") != want[name] }) {
			t.Errorf("another %s is not shown", name)
		}
	}
}
