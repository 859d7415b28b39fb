package gitlab_test

import (
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitlab"
)

// TestLacks: the scope and the role that are missing are told by name. A
// version that does not tell the scopes of a token lacks none.
func TestLacks(t *testing.T) {
	w := newWorld(t)
	w.as("root1", "POST", "/repos/"+repo+"/branch_protections", `{"rule_name": "main"}`)
	for name, test := range map[string]struct {
		role   string
		scopes []string
		faults []forgetest.Fault
		want   []string
	}{
		"all there":        {"admin", []string{"api", "read_user"}, nil, nil},
		"another scope":    {"admin", []string{"read_api"}, nil, []string{"the scope api of the token"}},
		"an unknown token": {"admin", []string{"api"}, []forgetest.Fault{{Method: "GET", Part: "/user", Status: 401}}, []string{"a token that GitLab knows"}},
		"a token that may nothing": {"admin", []string{"api"}, []forgetest.Fault{{Method: "GET", Part: "/user", Status: 403}}, []string{
			"the scope api of the token",
		}},
		"an older version": {"admin", nil, []forgetest.Fault{{Method: "GET", Part: "/personal_access_tokens/self", Status: 404}}, nil},
		"one who may not merge": {"write", []string{"api"}, nil, []string{
			"the role Maintainer in root1/web for the account bot, or that Developers are allowed to merge into main",
		}},
		"a reporter": {"reporter", []string{"read_api"}, nil, []string{"the scope api of the token", "the role Developer in root1/web for the account bot"}},
	} {
		w.role("bot", test.role)
		w.fake.Lab.Change(func(s *forgetest.LabState) { s.Scopes = test.scopes })
		w.fake.Script(test.faults...)
		got, err := gitlab.Lacks(wait.Context(t), w.Client, repo)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	w.fake.Lab.Change(func(s *forgetest.LabState) { s.Scopes = []string{"api"} })
	got, err := gitlab.Lacks(wait.Context(t), w.Client, "root1/none")
	if err != nil || !slices.Equal(got, []string{"a project root1/none that the account may see"}) {
		t.Errorf("of no project: %q, %v", got, err)
	}
	w.fake.Script(forgetest.Fault{Method: "GET", Part: "/members/", Status: 502})
	if got, err := gitlab.Lacks(wait.Context(t), w.Client, repo); err == nil {
		t.Errorf("of a forge with a fault: %q", got)
	}
}

// TestMakeLabel: a label is made once.
func TestMakeLabel(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"agents", "agents"} {
		if made, err := gitlab.MakeLabel(wait.Context(t), w.Client, repo, name); err != nil || made != (i == 0) {
			t.Errorf("%s, %d: %v, %v", name, i, made, err)
		}
	}
}
