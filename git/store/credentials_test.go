package store_test

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
)

// TestCredentialsAreReadEachTime replaces the password for an origin in the way of a mounted
// Secret: the next command of git uses the new one, and none the former.
func TestCredentialsAreReadEachTime(t *testing.T) {
	r := gittest.New(t, map[string]string{"a": "a\n"})
	origin := r.Origin()
	r.Git("-C", origin, "config", "http.receivepack", "true")
	var mu sync.Mutex
	valid, used := "first-password", map[string]bool{}
	backend := &cgi.Handler{
		Path: "/usr/bin/git", Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(origin), "GIT_HTTP_EXPORT_ALL=1"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, password, given := q.BasicAuth()
		mu.Lock()
		if given {
			used[password] = true
		}
		ok := password == valid
		mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", "Basic realm=git")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	host, _, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	home := t.TempDir()
	t.Setenv("HOME", home)
	renew := func(password string) map[string]bool {
		testdir.Secret(t, home, map[string]string{".netrc": "machine " + host + " login forge password " + password + "\n"})
		mu.Lock()
		defer mu.Unlock()
		before := used
		valid, used = password, map[string]bool{}
		return before
	}
	renew("first-password")
	s, err := store.OpenOrigin(t.Context(), store.OriginConfig{URL: server.URL + "/" + filepath.Base(origin), Dir: filepath.Join(t.TempDir(), "clone.git")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, password := range []string{"second-password", "third-password"} {
		renew(password)
		if err := s.Fetch(t.Context()); err != nil {
			t.Error(err)
		}
		if got := renew(password); len(got) != 1 || !got[password] {
			t.Errorf("with %s, git used %v", password, got)
		}
	}
}
