package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// openLate opens a Set of one origin that is tried until it is there.
func openLate(t *testing.T, url string) *jobs.Set {
	t.Helper()
	state := t.TempDir()
	host := jobs.Host{StateDir: state, Owner: process.NewOwner(state), Log: slog.New(slog.DiscardHandler)}
	set, err := jobs.OpenSet(t.Context(), host, []jobs.Source{{Project: repotest.Project, URL: url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	set.KeepOpening(t.Context())
	return set
}

// TestOriginThatComesLate checks that an origin whose server does not work yet is opened and
// prepared as soon as it does, without a command, and that commands are held back until then.
func TestOriginThatComesLate(t *testing.T) {
	t.Parallel()
	dir := gittest.New(t, map[string]string{"a.txt": "a\n"}).Origin()
	if out, err := exec.CommandContext(t.Context(), "git", "-C", dir, "update-server-info").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var there atomic.Bool
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !there.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	set := openLate(t, strings.Replace(server.URL, "://", "://someone:pass1@", 1))
	var prepared atomic.Int32
	err := set.Prepare(t.Context(), func(context.Context, *jobs.Repository) error {
		prepared.Add(1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := &forge.Command{BudgetUSD: 5, To: forge.Key{Project: repotest.Project, Intent: "fix"}}
	for what, err := range map[string]error{"readiness": set.Opened(), "a command": set.Hold(cmd)} {
		if err == nil || !strings.Contains(err.Error(), "project "+string(repotest.Project)+": ") || !strings.Contains(err.Error(), "503") {
			t.Errorf("%s says %v", what, err)
		} else if strings.Contains(err.Error(), "pass1") {
			t.Errorf("%s tells the password: %v", what, err)
		}
	}
	there.Store(true)
	wait.Until(t, "the origin is open", func() bool { return set.Opened() == nil && prepared.Load() == 1 })
	if err := set.Hold(cmd); err != nil {
		t.Errorf("a command is held back: %v", err)
	}
}

// TestHeldCommands checks for which origins commands are held back: not where a person has to
// mend something, nor the one that looks whether the origin is back.
func TestHeldCommands(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(http.NotFoundHandler())
	missing := httptest.NewServer(http.NotFoundHandler())
	defer missing.Close()
	away.Close()
	for url, held := range map[string]bool{
		away.URL + "/shop.git":        true,
		"http://git.invalid/shop.git": true,
		missing.URL + "/shop.git":     false,
		t.TempDir():                   false,
	} {
		set := openLate(t, url)
		cmd := &forge.Command{BudgetUSD: 5, To: forge.Key{Project: repotest.Project, Intent: "fix"}}
		if err := set.Hold(cmd); (err != nil) != held {
			t.Errorf("%s: %v", url, err)
		}
		if err := set.Opened(); err == nil {
			t.Errorf("%s is open", url)
		}
		probe := &forge.Command{To: cmd.To, Attempt: forge.Attempt{Step: forge.StepProbe, Number: 1, Claim: 1}}
		if err := set.Hold(probe); err != nil {
			t.Errorf("%s: what looks for the origin's return waits for it: %v", url, err)
		}
		cmd.To.Project = "other"
		if err := set.Hold(cmd); err != nil {
			t.Errorf("a project that is not served: %v", err)
		}
	}
}

// TestAddressOfNoOrigin checks that a URL that git cannot use ends the start.
func TestAddressOfNoOrigin(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	host := jobs.Host{StateDir: state, Owner: process.NewOwner(state), Log: slog.New(slog.DiscardHandler)}
	_, err := jobs.OpenSet(t.Context(), host, []jobs.Source{{Project: "shop", URL: "gopher://example.com/shop"}})
	if !errors.Is(err, store.ErrAddress) || !strings.Contains(err.Error(), "project shop: ") {
		t.Errorf("got %v", err)
	}
}
