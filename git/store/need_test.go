package store_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// prefix matches what git asks an origin to list.
var prefix = regexp.MustCompile(`ref-prefix (refs/(?:heads|forge)/[^\n]*)`)

// listed has a server for an origin note what it is asked to list: a line for
// each time, with the prefixes; "everything" without any.
func listed(t *testing.T, origin string) (url string, asked func() []string) {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: program, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(origin), "GIT_HTTP_EXPORT_ALL=1"},
	}
	var mu sync.Mutex
	var list []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(body, []byte("command=ls-refs")) {
			var prefixes []string
			for _, m := range prefix.FindAllSubmatch(body, -1) {
				if p := string(m[1]); !strings.Contains(strings.TrimPrefix(p, "refs/"), "refs/") { // the guesses for a short name are no refs of ours
					prefixes = append(prefixes, p)
				}
			}
			if prefixes == nil {
				prefixes = []string{"everything"}
			}
			slices.Sort(prefixes)
			mu.Lock()
			list = append(list, strings.Join(prefixes, " "))
			mu.Unlock()
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		backend.ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(origin), func() []string {
		mu.Lock()
		defer mu.Unlock()
		got := list
		list = nil
		return got
	}
}

// An origin lists what a step reads, and not the refs of all tasks.
func TestAnOriginListsWhatIsNeeded(t *testing.T) {
	url, asked := listed(t, gittest.New(t, map[string]string{"a": "a\n"}).Origin())
	s, err := store.OpenOrigin(t.Context(), store.OriginConfig{URL: url, Dir: filepath.Join(t.TempDir(), "clone.git")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	asked()
	need := func(n store.Need) func() error {
		n.Branch = "main"
		return func() error { return s.FetchFor(t.Context(), n) }
	}
	const ofTask = "refs/forge/_heads/fix-001 refs/forge/fix/fix-001/merge/ refs/heads/main"
	for name, c := range map[string]struct {
		do   func() error
		want string
	}{
		"an intent":        {need(store.Need{Intent: "fix"}), "refs/heads/main"},
		"a task":           {need(store.Need{Intent: "fix", Task: "fix-001"}), ofTask},
		"a merge":          {need(store.Need{Intent: "fix", Task: "fix-001", Merging: true}), ofTask},
		"tasks beside it":  {need(store.Need{Intent: "fix", Task: "fix-001", Heads: true}), "refs/forge/_heads/ refs/forge/fix/fix-001/merge/ refs/heads/main"},
		"a whole intent":   {func() error { return s.FetchIntent(t.Context(), "fix") }, "refs/forge/fix/"},
		"all of the tasks": {func() error { return s.Fetch(t.Context()) }, "refs/forge/_heads/ refs/heads/"},
	} {
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{c.want}, asked()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
