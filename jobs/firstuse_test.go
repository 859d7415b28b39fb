package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// served is an origin that counts what it is asked.
type served struct {
	url   string
	asked atomic.Int32
	away  atomic.Bool
}

func newServed(t *testing.T) *served {
	t.Helper()
	r := gittest.New(t, map[string]string{"a.txt": "a\n"})
	origin := r.Origin()
	r.Git("-C", origin, "update-server-info")
	s := &served{}
	// Whoever still asks for an origin of a test that has ended may find this server at its port.
	prefix := fmt.Sprintf("/%x", rand.Uint64())
	files := http.StripPrefix(prefix, http.FileServer(http.Dir(origin)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasPrefix(q.URL.Path, prefix) {
			http.NotFound(w, q)
			return
		}
		s.asked.Add(1)
		if s.away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		files.ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL + prefix
	return s
}

// openFirstUse opens a Set as a service with --clone=first-use does, and says how often a
// project was prepared.
func openFirstUse(t *testing.T, state string, sources ...jobs.Source) (*jobs.Set, *sync.Map) {
	t.Helper()
	host := jobs.Host{StateDir: state, Owner: process.NewOwner(state), Log: slog.New(slog.DiscardHandler), FirstUse: true}
	set, err := jobs.OpenSet(t.Context(), host, sources)
	if err != nil {
		t.Fatal(err)
	}
	set.KeepOpening(t.Context())
	var prepared sync.Map
	err = set.Prepare(t.Context(), func(_ context.Context, r *jobs.Repository) error {
		if _, twice := prepared.LoadOrStore(r.Project, true); twice {
			t.Errorf("%s is prepared twice", r.Project)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, &prepared
}

// TestClonedAtFirstUse: a replica asks no origin before the first command of its project, and
// never those of others. Commands that come together clone once. The next life opens what is
// there, and an origin that is away is tried again by the next command.
func TestClonedAtFirstUse(t *testing.T) {
	t.Parallel()
	shop, site := newServed(t), newServed(t)
	sources := []jobs.Source{{Project: "shop", URL: shop.url}, {Project: "site", URL: site.url}}
	state := testdir.New(t)
	set, prepared := openFirstUse(t, state, sources...)
	cmd := &forge.Command{BudgetUSD: 5, To: forge.Key{Project: "shop", Intent: "fix"}}
	if err := errors.Join(set.Opened(), set.Hold(cmd)); err != nil {
		t.Errorf("a service that nobody needed yet is not ready: %v", err)
	}
	if n := shop.asked.Load() + site.asked.Load(); n != 0 {
		t.Errorf("origins were asked %d times before a command", n)
	}
	run := func(want bool) {
		t.Helper()
		res := set.Do(t.Context(), cmd, func(forge.Progress) {}, func(_ context.Context, j *jobs.Job) error {
			if _, ok := prepared.Load(j.Project); !ok {
				t.Error("a command began before its project was prepared")
			}
			return nil
		})
		if f := res.Failure(); (f == nil) != want {
			t.Errorf("failure %+v", f)
		}
	}
	shop.away.Store(true)
	run(false)
	if err := set.Hold(cmd); err == nil {
		t.Error("a command begins although its origin is away")
	}
	if err := set.Opened(); err != nil {
		t.Errorf("one origin that is away takes the replica out of service: %v", err)
	}
	shop.away.Store(false)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { run(true) })
	}
	all.Wait()
	if shop.asked.Load() == 0 || site.asked.Load() != 0 {
		t.Errorf("shop was asked %d times, site %d", shop.asked.Load(), site.asked.Load())
	}
	if _, err := os.Stat(filepath.Join(state, "projects", "site")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is something of a project without a command: %v", err)
	}
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}

	before := shop.asked.Load()
	set, prepared = openFirstUse(t, state, sources...)
	if _, ok := prepared.Load(forge.ProjectID("shop")); !ok || shop.asked.Load() == before {
		t.Error("what an earlier life cloned is not looked after at the start")
	}
	if _, err := set.Get("site"); err == nil || site.asked.Load() != 0 {
		t.Errorf("the other project is open: %v", err)
	}
	if _, err := set.Open(t.Context(), "site"); err != nil {
		t.Error(err)
	}
	if _, err := set.Open(t.Context(), "other"); err == nil {
		t.Error("a project that is not served is opened")
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}

// TestAddressAtFirstUse: an address that git cannot use ends the start, not the first command.
func TestAddressAtFirstUse(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	host := jobs.Host{StateDir: state, Owner: process.NewOwner(state), Log: slog.New(slog.DiscardHandler), FirstUse: true}
	if _, err := jobs.OpenSet(t.Context(), host, []jobs.Source{{Project: "shop", URL: "gopher://example.com/shop"}}); !errors.Is(err, store.ErrAddress) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkStart is the start of a replica with 50 projects, on the disk of this machine.
func BenchmarkStart(b *testing.B) {
	r := gittest.New(b, map[string]string{"a.txt": "a\n"})
	var sources []jobs.Source
	for i := range 50 {
		sources = append(sources, jobs.Source{Project: forge.ProjectID("p" + string(rune('a'+i/26)) + string(rune('a'+i%26))), URL: r.Origin()})
	}
	for name, first := range map[string]bool{"all": false, "first-use": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				state := b.TempDir()
				host := jobs.Host{StateDir: state, Owner: process.NewOwner(state), Log: slog.New(slog.DiscardHandler), FirstUse: first}
				set, err := jobs.OpenSet(b.Context(), host, sources)
				if err != nil {
					b.Fatal(err)
				}
				if err := set.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
