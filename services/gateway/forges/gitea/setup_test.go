package gitea_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/person"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitea"
)

// asRoot calls the fake as its administrator.
func asRoot(t *testing.T, f *forgetest.Fake, method, path string, in map[string]any) {
	t.Helper()
	person.Person{API: f.URL() + person.Gitea, Token: "root1"}.Does(t, method, path, in, nil)
}

// TestLacks: what an account and its token lack is told by name, all of it, and what
// is only refused for another reason is not missing. Nothing is made by asking.
func TestLacks(t *testing.T) {
	f := forgetest.NewFake()
	defer f.Close()
	asRoot(t, f, http.MethodPost, "/user/repos", map[string]any{"name": "web"})
	collaborate := func(right string) {
		asRoot(t, f, http.MethodPut, "/repos/root1/web/collaborators/bot", map[string]any{"permission": right})
	}
	c := clientOf(t, f.URL())
	denied := func(method, part string) forgetest.Fault {
		return forgetest.Fault{Method: method, Part: part, Status: 403}
	}
	for _, one := range []struct {
		what, right string
		faults      []forgetest.Fault
		want        []string
	}{
		{"a reader", "read", nil, []string{"admin on root1/web for the account bot, whose right is read"}},
		{"a writer", "write", nil, []string{"admin on root1/web for the account bot, whose right is write"}},
		{"all there", "admin", nil, nil},
		{"another token", "admin", []forgetest.Fault{{Method: "GET", Part: "/user", Status: 401}}, []string{"a token that the forge knows"}},
		{"a token without scopes", "admin", []forgetest.Fault{
			denied("GET", "/user"), denied("GET", "/user/orgs"), denied("POST", "/labels"), denied("POST", "/pulls"),
		}, []string{
			"the scope read:user of the token", "the scope read:organization of the token", "the scope write:issue of the token",
			"the scope write:repository of the token",
		}},
		{"a token of a reader", "admin", []forgetest.Fault{denied("POST", "/pulls")}, []string{"the scope write:repository of the token"}},
	} {
		collaborate(one.right)
		f.Script(one.faults...)
		got, err := gitea.Lacks(wait.Context(t), c, "root1/web")
		if err != nil || !slices.Equal(got, one.want) {
			t.Errorf("%s: %q, %v", one.what, got, err)
		}
	}
	if got, err := gitea.Lacks(wait.Context(t), c, "root1/none"); err != nil || !slices.Equal(got, []string{"a repository root1/none that the account may see"}) {
		t.Errorf("of no repository: %q, %v", got, err)
	}
	f.Script(forgetest.Fault{Method: "POST", Part: "/pulls", Status: 502})
	if got, err := gitea.Lacks(wait.Context(t), c, "root1/web"); err == nil {
		t.Errorf("of a forge with a fault: %q", got)
	}
	if made, err := gitea.MakeLabel(wait.Context(t), c, "root1/web", "forge"); err != nil || !made {
		t.Errorf("the first label: %v, %v", made, err)
	}
	if made, err := gitea.MakeLabel(wait.Context(t), c, "root1/web", "Forge"); err != nil || made {
		t.Errorf("the label that is there: %v, %v", made, err)
	}
}
