package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
)

func TestRoles(t *testing.T) {
	writes := map[agent.Role]bool{agent.RoleImplement: true, agent.RoleExecute: true}
	for _, role := range agent.Roles() {
		s := agent.Spec(role)
		if s.Role != role || s.ReadOnly() == writes[role] || s.Schema == nil || s.Check == nil {
			t.Errorf("%s: %+v", role, s)
		}
	}
	if s := agent.Spec("other"); !s.ReadOnly() || s.Tools != agent.ToolsNone {
		t.Errorf("what is no role may %+v", s)
	}
}

// TestJudgesFindFilesWithGrep has no call that decides on a change pay for Glob, unless
// there is nothing else to search with.
func TestJudgesFindFilesWithGrep(t *testing.T) {
	for _, tt := range []struct {
		role           agent.Role
		configured, in []string
	}{
		{agent.RoleReview, []string{"Read", "Glob", "Grep"}, []string{"Read", "Grep"}},
		{agent.RoleReview, []string{"Read", "Glob"}, []string{"Read", "Glob"}},
		{agent.RoleAnalyze, []string{"Read", "Glob", "Grep"}, []string{"Read", "Glob", "Grep"}},
		{agent.RoleJudge, []string{"Read", "Glob", "Grep"}, nil},
	} {
		spec := agent.Spec(tt.role)
		p := &config.Project{TriageTools: slices.Clone(tt.configured)}
		if got := spec.ToolsOf(p); !slices.Equal(got, tt.in) || !slices.Equal(p.TriageTools, tt.configured) {
			t.Errorf("%s of %q has %q, and leaves %q", tt.role, tt.configured, got, p.TriageTools)
		}
	}
}

// TestSchemasArePlain is because Claude Code ignores a whole schema that has a keyword
// it does not know, without a word.
func TestSchemasArePlain(t *testing.T) {
	known := []string{"type", "properties", "required", "additionalProperties", "items", "enum", "description", "minLength", "minItems"}
	for _, role := range agent.Roles() {
		spec := agent.Spec(role)
		var schema map[string]any
		if err := json.Unmarshal(spec.Schema, &schema); err != nil || schema["type"] != "object" {
			t.Errorf("%s: %v, type %v", role, err, schema["type"])
		}
		var walk func(path string, s map[string]any)
		walk = func(path string, s map[string]any) {
			for key, v := range s {
				if !slices.Contains(known, key) {
					t.Errorf("%s: %s has %q", role, path, key)
				}
				switch v := v.(type) {
				case map[string]any:
					if key == "items" {
						walk(path+"[]", v)
						continue
					}
					for name, p := range v {
						walk(path+"."+name, p.(map[string]any))
					}
				case bool:
					if v {
						t.Errorf("%s: %s takes more than it names", role, path)
					}
				}
			}
		}
		walk("", schema)
	}
}

func TestSessionIDs(t *testing.T) {
	if a, b := agent.NewSessionID(), agent.NewSessionID(); a == b || !agent.IsSessionID(a) {
		t.Errorf("%s and %s", a, b)
	}
	for _, s := range []string{"", "../../x", "s1", strings.ToUpper(agent.NewSessionID()), agent.NewSessionID() + "\n"} {
		if agent.IsSessionID(s) {
			t.Errorf("%q was taken", s)
		}
	}
}
