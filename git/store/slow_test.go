package store_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// TestSlowOrigin has an origin that answers, and whose branch has more than a fetch brings in
// its time. The fetch is over then, and the error does not say that the origin is away: it
// would be back at once, and the next fetch would take as long. Nothing of what came stays.
func TestSlowOrigin(t *testing.T) {
	r := gittest.New(t, map[string]string{"a": "a\n"})
	origin := r.Origin()
	backend := overHTTP(t, origin)
	var slow atomic.Bool
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		if slow.Load() && bytes.Contains(body, []byte("command=fetch")) {
			all := httptest.NewRecorder()
			backend.ServeHTTP(all, q)
			w.Header().Set("Content-Type", all.Header().Get("Content-Type"))
			_, _ = w.Write(all.Body.Bytes()[:all.Body.Len()/2])
			_ = http.NewResponseController(w).Flush()
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
	cfg := store.OriginConfig{
		URL: server.URL + "/" + filepath.Base(origin), Dir: filepath.Join(t.TempDir(), "clone.git"), Patience: 5 * time.Second,
		Question: time.Minute, // a machine under load takes its time
	}
	s, err := store.OpenOrigin(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	slow.Store(true)
	next := r.Commit("much", map[string]string{"b": "b\n"})
	r.Git("push", "-q", origin, "main")
	begun := filepath.Join(cfg.Dir, "objects", "pack", "tmp_pack_begun") // as git leaves it when it is killed
	if err := os.WriteFile(begun, []byte("much"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Fetch(t.Context()); !errors.Is(err, git.ErrSlow) || git.Unreachable(err) || git.CauseOf(err) != "" {
		t.Errorf("fetched: %v, which is %q", err, git.CauseOf(err))
	}
	if _, err := os.Stat(begun); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what came is kept: %v", err)
	}
	slow.Store(false)
	cfg.Patience = 0
	again, err := store.OpenOrigin(t.Context(), cfg)
	if err != nil || !again.Has(t.Context(), next) {
		t.Fatalf("the next fetch: %v", err)
	}
	t.Cleanup(again.Close)
}
