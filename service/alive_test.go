package service_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/alive"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
)

// livez returns what a service answers.
func livez(h *service.Health) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/livez", http.NoBody))
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestLivezFailsWhenALoopStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h service.Health
		loop := h.Alive.Loop("decision")
		loop.Busy()
		<-wait.Briefly(t, alive.Patience).Done()
		if code, body := livez(&h); code != http.StatusOK || body != "ok" {
			t.Errorf("%d %s", code, body)
		}
		<-wait.Briefly(t, time.Second).Done()
		if code, body := livez(&h); code != http.StatusServiceUnavailable || body != "stands still: decision: 1 for up to 1m1s" {
			t.Errorf("%d %s", code, body)
		}
		loop.End()
		if code, _ := livez(&h); code != http.StatusOK {
			t.Error(code)
		}
	})
}

// TestLongCallsAndNATSAwayAreNoStandstill: while an agent works, while its result waits for a
// runner, and while NATS is away, no loop is busy; so no time that passes can end the service.
func TestLongCallsAndNATSAwayAreNoStandstill(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	r := absentRunner(t, b)
	began, finish := make(chan struct{}, 1), make(chan struct{})
	w := worker(t, b, func(ctx context.Context, _ forge.Command, _ service.Progress) forge.Result {
		began <- struct{}{}
		select {
		case <-finish:
		case <-ctx.Done():
		}
		return forge.Result{Output: &forge.Analysis{NothingToDo: "yes"}}
	})
	w.Alive = &alive.Watch{}
	workerRun(t, w)
	r.start(analyze(1))
	wait.For(t, began)
	rests := func(when string) {
		t.Helper()
		wait.Until(t, "nothing is busy "+when, func() bool { return len(w.Alive.Working()) == 0 })
	}
	rests("while the handler runs")
	s.Stop()
	rests("while NATS is away")
	close(finish)
	rests("while the result waits for NATS")
	s.Start(t)
	rests("while the result waits for a runner")
	r.decide()
	r.result()
}
