package forgetest_test

import (
	"errors"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
)

// TestTeams: who is in a team is told by the forge; a team that is not there, that is
// elsewhere or that our account may not see is an error, and never one without members.
func TestTeams(t *testing.T) {
	t.Parallel()
	for name, d := range dialects {
		t.Run(name, func(t *testing.T) {
			f := forgetest.NewFake()
			t.Cleanup(f.Close)
			w := newWorld(t, d, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
			f.Team("root1/core", false, "ada")
			f.Team("root1/hidden", true, "ada")
			f.Team("other/crew", false, "ada")
			c, ctx := w.bot(), wait.Context(t)
			of := map[bool]string{true: "root1/"}[w.nested] // a group has the name of those around it
			for login, want := range map[string]bool{"ada": true, "eve": false} {
				a, err := c.Account(ctx, w.repo, login)
				if err != nil {
					t.Fatal(err)
				}
				if in, err := c.InTeam(ctx, w.repo, a, of+"core"); in != want || err != nil {
					t.Errorf("%s is in the team: %t, %v", login, in, err)
				}
				for _, team := range []string{of + "hidden", of + "none", "other/crew", "crew", of + "cor"} {
					in, err := c.InTeam(ctx, w.repo, a, team)
					if in || !errors.Is(err, forges.ErrNotFound) && !errors.Is(err, forges.ErrDenied) {
						t.Errorf("%s is in %s: %t, %v", login, team, in, err)
					}
				}
			}
		})
	}
}
