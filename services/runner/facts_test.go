package runner_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// TestFactsOnReadyz: what keeps a project waiting is told with since when and
// why while the runner is ready, and no more once it is over.
func TestFactsOnReadyz(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	ready := make(chan struct{})
	group.Go(func() error {
		return runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }})
	})
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	wait.For(t, ready)
	var mended atomic.Bool
	startWorkers(t, b, func(c forge.Command) forge.Result {
		r := succeed(c)
		if c.Attempt.Step == forge.StepAnalyze && !c.Analyze().PolicyOnly && !mended.Load() {
			r.Agent, r.Output = "claude", &forge.Failure{Reason: forge.FailAuth, Message: "the key has ended"}
		}
		return r
	})
	var h service.Health
	h.Know(runner.Facts(b.Journal))
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz?verbose", nil))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	const none = `{"ready":true,"draining":false,"missing":[],"facts":[]}`
	if code, body := ask(); code != 200 || body != none {
		t.Fatal(code, body)
	}
	// It says auth, and of which account; since is a time of this century, and not the zero one.
	if r := asked(t, b, submission("one")); r.Decision != forge.Applied {
		t.Fatal(r)
	}
	wait.Until(t, "the fact is told", func() bool {
		code, body := ask()
		return code == 200 && strings.Contains(body, `"facts":[{"project":"`+string(project)+`","fact":"auth","of":"claude","why":"the key has ended","since":"20`)
	})
	// A person has renewed the key, and says so.
	mended.Store(true)
	if r := asked(t, b, forge.Event{ID: "go", To: forge.Key{Project: project}, Message: &forge.Resume{}}); r.Decision != forge.Applied {
		t.Fatal(r)
	}
	await(t, b, forge.StatusDone, "one")
	wait.Until(t, "the fact is over", func() bool { _, body := ask(); return body == none })
}
