package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/config"
)

func TestAgents(t *testing.T) {
	p, err := config.Parse([]byte(`
agent: codex
roles: {review: gemini, implement: ours}
fallback: [claude, ours]
models: {default: sonnet, complex: opus}
agents:
  codex:
    models: {default: gpt-5-codex}
  ours:
    command: [/opt/agent, --json]
    read_only: true
    models: {triage_deep: small, default: large, complex: huge}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, role := range config.RoleNames() {
		got[role] = p.AgentFor(role)
	}
	want := map[string]string{"analyze": "codex", "implement": "ours", "review": "gemini", "reflect": "codex"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	p.Roles["analyze"], p.Roles["reflect"] = "ours", "gemini"
	for step, want := range map[string]string{"architect": "ours", "audit": "ours", "observe": "ours", "abstract": "gemini"} {
		if got := p.AgentFor(step); got != want {
			t.Errorf("%s: %s, want %s", step, got, want)
		}
	}
	models := map[string]config.Models{}
	for _, name := range []string{"claude", "codex", "gemini", "ours"} {
		models[name] = p.ModelsOf(name)
	}
	if diff := cmp.Diff(map[string]config.Models{
		"claude": {TriageDeep: "sonnet", Default: "sonnet", Complex: "opus"},
		"codex":  {TriageDeep: "gpt-5-codex", Default: "gpt-5-codex", Complex: "gpt-5-codex"},
		"gemini": {},
		"ours":   {TriageDeep: "small", Default: "large", Complex: "huge"},
	}, models); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"codex", "ours", "gemini", "claude"}, p.UsedAgents()); diff != "" {
		t.Error(diff)
	}
	wantOurs := config.AgentConfig{
		Command: []string{"/opt/agent", "--json"}, ReadOnly: true,
		Models: config.Models{TriageDeep: "small", Default: "large", Complex: "huge"},
	}
	if diff := cmp.Diff(wantOurs, p.Agents["ours"]); diff != "" {
		t.Error(diff)
	}
}

func TestAgentsRefused(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"roles: {reviews: codex}", `pfl-forge.yaml:1: roles.reviews: unknown key; did you mean "review"?; known keys are analyze`},
		{"roles: {review: codecs}", `roles.review: "codecs" is not one of claude, codex`},
		{"roles: {review: recipe}", "roles.review: recipe does what an intent's recipe says"},
		{"fallback: [codx]", `fallback[0]: "codx" is not one of claude, codex, gemini, opencode`},
		{"fallback: [codex, codex]", `fallback[1]: "codex" is given twice`},
		{"fallback: [recipe]", "fallback[0]: recipe cannot stand in for an agent"},
		{"agents: {codx: {}}", `agents.codx: needs a command, or did you mean "codex"?`},
		{"agents: {ours: {command: []}}", "agents.ours: needs a command"},
		{"agents: {ours: {command: ['']}}", "agents.ours.command[0]: must not be empty"},
		{"agents: {ours: {command: [x, \"a\\0b\"]}}", "agents.ours.command[1]: must not contain a NUL character"},
		{"agents: {ours: {command: [./x]}}", `agents.ours.command[0]: "./x" must be absolute`},
		{"agents: {Ours: {command: [x]}}", `agents.Ours: agent name "Ours" must be a-z`},
		{"agents: {ours: {comand: [x]}}", `agents.ours.comand: unknown key; did you mean "command"?`},
		{"agents: {codex: {command: [x]}}", "agents.codex.command: goes with a program of your own"},
		{"agents: {codex: {read_only: true}}", "agents.codex.read_only: goes with a program of your own"},
		{"agents: {codex: {models: {default: -x}}}", "agents.codex.models.default: must not start with a hyphen"},
		{"agents: {codex: {models: {default: ''}}}", "agents.codex.models.default: must not be empty"},
		{"agents: {claude: {models: {default: x}}}", "agents.claude: the models of claude are in models"},
		{"agents: {recipe: {models: {default: x}}}", "agents.recipe: recipe has no models"},
	} {
		_, err := config.Parse([]byte(tt.in))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q:\n got %v\nwant ...%s", tt.in, err, tt.want)
		}
	}
}
