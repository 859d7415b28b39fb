package store_test

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// overHTTP returns a server of the repositories beside an origin, as git's own program serves them.
func overHTTP(t *testing.T, origin string) http.Handler {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return &cgi.Handler{
		Path: program, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(origin), "GIT_HTTP_EXPORT_ALL=1"},
	}
}

// TestSilentOrigin has an origin that accepts and says nothing more: whatever talks
// to it ends, and the error says that it does not answer. Once it does, all goes on.
func TestSilentOrigin(t *testing.T) {
	r := gittest.New(t, map[string]string{"a": "a\n"})
	origin := r.Origin()
	backend := overHTTP(t, origin)
	var silent atomic.Bool
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if silent.Load() {
			select {
			case <-q.Context().Done():
			case <-ended:
			}
			return
		}
		backend.ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	cfg := store.OriginConfig{URL: server.URL + "/" + filepath.Base(origin), Dir: filepath.Join(t.TempDir(), "clone.git")}
	first, err := store.OpenOrigin(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Close)
	silent.Store(true)
	// The caller's time is over before that of the command.
	soon := wait.Briefly(t, 0)
	if err := first.TakesWork(soon); git.CauseOf(err) != git.CauseTimeout {
		t.Errorf("asked by somebody whose time is over: %v, which is %q", err, git.CauseOf(err))
	}
	// That it is silent is found out by a question, before a fetch or a clone that may take hours.
	for _, dir := range []string{cfg.Dir, filepath.Join(t.TempDir(), "another.git")} {
		asked := store.OriginConfig{URL: cfg.URL, Dir: dir, Patience: time.Hour, Question: 200 * time.Millisecond}
		if _, err := store.OpenOrigin(t.Context(), asked); git.CauseOf(err) != git.CauseTimeout || !git.Unreachable(err) {
			t.Errorf("opened with a question: %v, which is %q", err, git.CauseOf(err))
		}
	}
	cfg.Patience = 200 * time.Millisecond
	if _, err := store.OpenOrigin(t.Context(), cfg); git.CauseOf(err) != git.CauseTimeout || !git.Unreachable(err) {
		t.Errorf("opened: %v, which is %q", err, git.CauseOf(err))
	}
	silent.Store(false)
	if err := first.Fetch(t.Context()); err != nil {
		t.Error(err)
	}
}
