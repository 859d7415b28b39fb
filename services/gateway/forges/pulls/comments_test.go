package pulls_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/heard"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// TestCommentsOnAPullRequest: the comments of others on a pull request that is
// open are told with the intent that it belongs to, and ours are not. That they
// cannot be told keeps nothing else back.
func TestCommentsOnAPullRequest(t *testing.T) {
	onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		var mu sync.Mutex
		var told []string
		hear := func(_ context.Context, key forge.Key, self intake.Account, at heard.Place, list []forges.Comment) error {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range list {
				if said := fmt.Sprintf("%s of %s in %s", c.Author.Login, key.Intent, at); !slices.Contains(told, said) {
					told = append(told, said)
				}
				if c.Author.ID == self.ID || self.ID == 0 {
					t.Errorf("%d tells of itself", self.ID)
				}
			}
			return errors.New("the runner is away")
		}
		k := w.keeper(often, func(c *pulls.Config) { c.Hear = hear })
		w.open(k)
		w.run(k)
		for _, user := range []string{"bot", "eve", "ada"} {
			w.as(user, "POST", "/repos/"+w.repo+"/issues/1/comments", object{"body": "Closes #1. Looks fine, @ada."}, nil)
		}
		where := " of " + string(w.to.Intent) + " in " + w.repo + " pull request 1"
		want := []string{"ada" + where, "eve" + where}
		wait.Until(t, "the comments are told", func() bool {
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(told)
			return slices.Equal(told, want)
		})
		w.status("ada", "ci/unit", "failure")
		w.until("a check failed", func(p *forge.PullRequest) bool {
			return len(p.Checks) > 0 && p.Checks[0].State == forge.PullCheckFailed
		})
	})
}
