package outside

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
)

// TestRepositoriesApart: a repository that is not there, or cannot be read,
// keeps no other from being swept, and is itself as soon as it can be.
func TestRepositoriesApart(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
	first := w.repo
	w.others = []string{"root1/later"}
	w.watch(50 * time.Millisecond)
	w.until(w.open(), "of project `shop`")
	w.as("root1", http.MethodPost, "/user/repos", object{"name": "later", "auto_init": true}, nil)
	w.as("root1", http.MethodPut, "/repos/root1/later/collaborators/bot", object{"permission": "admin"}, nil)
	w.as("root1", http.MethodPut, "/repos/root1/later/collaborators/ada", object{"permission": "write"}, nil)
	w.as("root1", http.MethodPost, "/repos/root1/later/labels", object{"name": "forge", "color": "#00aabb"}, nil)
	w.repo = "root1/later"
	w.until(w.open(), "of project `shop`")
	// From now on it cannot be listed any more: the list of the other goes on.
	f.Script(slices.Repeat([]forgetest.Fault{{Method: http.MethodGet, Part: "root1/later/issues", By: "bot", Status: http.StatusForbidden}}, 10000)...)
	w.repo = first
	w.until(w.open(), "of project `shop`")
}

// TestIssueIsClosed: the issue of an intent that is done is closed once, with a summary in
// our comment, whatever answers are lost; a person who opens it again has the last word.
func TestIssueIsClosed(t *testing.T) {
	t.Parallel()
	onForges(t, func(t *testing.T, w *forgeWorld, fake *forgetest.Fake) { //nolint:thelper // it is the test itself
		w.nothing.Store(true)
		stop := w.watch(50 * time.Millisecond)
		issue := w.open()
		isOpen := func() bool {
			var got struct{ State string }
			w.as("root1", http.MethodGet, issue, nil, &got)
			return got.State == "open"
		}
		text := w.hash(issue, "")
		stop()
		if fake != nil {
			fake.Script(forgetest.Fault{
				Method: "PATCH", Part: "/issues/1", By: "bot", Status: 502, After: true, Header: http.Header{"Retry-After": {"1"}},
			})
		}
		stop = w.watch(50 * time.Millisecond)
		w.say("ada", issue, "/forge approve "+text)
		w.until(issue, "**done**")
		wait.Until(t, "the issue is closed", func() bool { return !isOpen() })
		if said := w.until(issue, `"closed":1`); !strings.Contains(said, "the issue is closed by that") {
			t.Errorf("we said %q", said)
		}
		w.as("ada", http.MethodPatch, issue, object{"state": "open"}, nil)
		w.say("ada", issue, "/forge status")
		stop()
		w.watch(50 * time.Millisecond)
		w.say("eve", issue, "/forge cancel") // and looked at once more
		w.until(issue, "needs the right to write")
		if !isOpen() {
			t.Error("it was closed again")
		}
	})
}
