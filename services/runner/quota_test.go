package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// bounded runs a runner with quotas, until what it returns is called.
func bounded(t *testing.T, b *bus.Bus, limits quota.Limits) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	ready := make(chan struct{})
	group.Go(func() error {
		return runner.Run(ctx, runner.Config{
			Bus: b, Log: slog.New(slog.DiscardHandler), Serve: true, Quotas: limits, Ready: func() { close(ready) },
		})
	})
	wait.For(t, ready)
	stop = func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// sent counts the messages of asked.
var sent atomic.Int64

// asked returns the ruling on an event, which is sent as a message of its own.
func asked(t *testing.T, b *bus.Bus, ev forge.Event) forge.Ruling {
	t.Helper()
	ev.ID += fmt.Sprintf("/%d", sent.Add(1))
	r, err := b.Submissions.Ask(t.Context(), ev)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestQuotaOfProject: above the quota a new intent is refused, one that is
// there is not; when one has ended the refused one is accepted as it is. A
// runner that starts anew knows what was open before.
func TestQuotaOfProject(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	stop := bounded(t, b, quota.Limits{Project: 3})
	for _, id := range []forge.IntentID{"a", "b", "c"} {
		if r := asked(t, b, submission(id)); r.Decision != forge.Applied {
			t.Fatal(r)
		}
	}
	refused := func() {
		t.Helper()
		r := asked(t, b, submission("d"))
		if !quota.Exceeded(r) || r.Field != quota.OfProject || !strings.Contains(r.Reason, "3 open intents, as many as it may; try again after 1m") {
			t.Fatalf("%+v", r)
		}
		if r := asked(t, b, submission("b")); r.Decision != forge.Ignored {
			t.Errorf("the same one again: %+v", r)
		}
		other := submission("b")
		other.ID, forge.As[*forge.Submit](other.Message).Intent.Origin.EventID = "other", "other"
		if r := asked(t, b, other); r.Decision != forge.Refused || r.Field != "id" {
			t.Errorf("another one of the same id: %+v", r)
		}
	}
	refused()
	if _, err := b.Journal.Summary(t.Context(), forge.Key{Project: project, Intent: "d"}); err == nil {
		t.Error("the refused one has a journal")
	}
	// Nothing is kept in memory alone: a runner that starts anew looks before it lets anything in.
	stop()
	bounded(t, b, quota.Limits{Project: 3})
	refused()
	if r := asked(t, b, forge.Event{ID: "stop", To: forge.Key{Project: project, Intent: "a"}, Message: &forge.Cancel{}}); r.Decision != forge.Applied {
		t.Fatal(r)
	}
	if r := asked(t, b, submission("d")); r.Decision != forge.Applied {
		t.Fatal(r)
	}
	if r := asked(t, b, submission("a")); r.Decision != forge.Ignored {
		t.Errorf("one that has ended, again: %+v", r)
	}
}

// TestQuotaOfSystem: a system that has as many open intents as it may is told
// so, with when to try again; others are not.
func TestQuotaOfSystem(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	bounded(t, s.Connect(t), quota.Limits{System: 1})
	nc := client(t, s)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	submit := func(system, id string) (map[string]any, string) {
		return request(t, nc, "forge.api.web.from."+system+".submit", fmt.Sprintf(`{"title": "t", "body": "b", "origin": {"event_id": %q}}`, id))
	}
	if got, code := submit("scanner", "1"); code != "" || got["result"] != "new" {
		t.Fatal(got, code)
	}
	got, code := submit("scanner", "2")
	if code != "429" || !strings.Contains(fmt.Sprint(got["errors"]), "map[field:quota.system reason:system scanner has 1 open intents") {
		t.Fatal(got, code)
	}
	if got, code := submit("scanner", "1"); code != "" || got["result"] != "known" {
		t.Error(got, code)
	}
	if got, code := submit("ci", "1"); code != "" || got["result"] != "new" {
		t.Error(got, code)
	}
	if _, err := js.Publish(t.Context(), "forge.intent.web.from.scanner.submit", []byte(`{"title": "t", "body": "b", "origin": {"event_id": "3"}}`)); err != nil {
		t.Fatal(err)
	}
	cons, err := js.OrderedConsumer(t.Context(), "FORGE_REFUSALS", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"forge.refusal.web.scanner"}})
	if err != nil {
		t.Fatal(err)
	}
	// Refusals of requests are told there too, so the one that was stored comes
	// after that of the request.
	for id := ""; id != "3"; { // that of the request is told there as well
		m, err := cons.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		var ev struct{ Data requests.Refusal }
		if err := json.Unmarshal(m.Data(), &ev); err != nil {
			t.Fatal(err)
		}
		if len(ev.Data.Errors) != 1 || ev.Data.Errors[0].Field != quota.OfSystem || ev.Data.RetryAfterSeconds != 60 {
			t.Errorf("%+v", ev.Data)
		}
		id = ev.Data.Origin.EventID
	}
}

// TestQuotaOfTwoRunners: two that decide at the same time exceed a quota by no
// more than what one of them decides on at once, 64; after that both refuse.
func TestQuotaOfTwoRunners(t *testing.T) {
	t.Parallel()
	const room, most = 20, 20 + 64
	s := bustest.StartServer(t)
	for range 2 {
		bounded(t, s.Connect(t), quota.Limits{Project: room})
	}
	b := s.Connect(t)
	var accepted atomic.Int64
	var group errgroup.Group
	group.SetLimit(100)
	for n := range 200 {
		group.Go(func() error {
			r, err := b.Submissions.Ask(t.Context(), submission(forge.IntentID(fmt.Sprintf("i-%d", n))))
			if r.Decision == forge.Applied {
				accepted.Add(1)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d accepted, the quota is %d", accepted.Load(), room)
	if n := accepted.Load(); n < room || n > most {
		t.Errorf("%d are accepted, want %d to %d", n, room, most)
	}
	// Now that both have seen what the other wrote, neither lets anything in.
	for n := range 10 {
		if r := asked(t, b, submission(forge.IntentID(fmt.Sprintf("late-%d", n)))); !quota.Exceeded(r) {
			t.Errorf("%+v", r)
		}
	}
}

// TestQuotaHoldsNoPartBack: the parts of an intent that was accepted are.
func TestQuotaHoldsNoPartBack(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	bounded(t, b, quota.Limits{Project: 1})
	startWorkers(t, b, func(c forge.Command) forge.Result {
		r := succeed(c)
		if out := forge.As[*forge.Analysis](r.Output); out != nil && c.Intent.Depth == 0 {
			out.Tasks = nil
			out.Children = []forge.ChildPlan{{Name: "x", Title: "x", Body: "do it", Risk: forge.RiskLow}, {Name: "y", Title: "y", Body: "do it", Risk: forge.RiskLow}}
		}
		return r
	})
	if r := asked(t, b, submission("whole")); r.Decision != forge.Applied {
		t.Fatal(r)
	}
	await(t, b, forge.StatusDone, "whole")
}
