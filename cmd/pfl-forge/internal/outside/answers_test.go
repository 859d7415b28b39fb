package outside

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// TestRefusalIsRemembered: who answers a command by a reaction, and does not learn that
// it is there, tells all the same why the command was refused, and has reacted once. On
// GitLab the reaction makes the comment look edited, and an edited one commands nothing.
func TestRefusalIsRemembered(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, fake *forgetest.Fake) { //nolint:thelper // it is the test itself
		stop := w.watch(50 * time.Millisecond)
		issue := w.open()
		w.hash(issue, "")
		stop()
		part := map[bool]string{false: "/reactions", true: "/award_emoji"}[w.dialect == hooks.GitLab]
		fake.Script(forgetest.Fault{
			Method: http.MethodPost, Part: part, By: "bot", Status: http.StatusBadGateway, After: true, Header: http.Header{"Retry-After": {"1"}},
		})
		w.say("eve", issue, "/forge cancel")
		stop = w.watch(50 * time.Millisecond)
		w.until(issue, "needs the right to write")
		reacted := func() bool {
			return slices.ContainsFunc(fake.Comments(w.repo, 1), func(c forgetest.Comment) bool {
				return c.By == "eve" && slices.Equal(c.Reactions, []string{"bot -1"})
			})
		}
		wait.Until(t, "eve is answered", reacted)
		stop()
		w.watch(50 * time.Millisecond)
		w.say("ada", issue, "/forge status")
		w.until(issue, "**proposed**")
		wait.Until(t, "ada is answered", func() bool {
			return slices.ContainsFunc(fake.Comments(w.repo, 1), func(c forgetest.Comment) bool { return c.By == "ada" && len(c.Reactions) == 1 })
		})
		if !reacted() {
			t.Errorf("eve has other answers: %+v", fake.Comments(w.repo, 1))
		}
	})
}
