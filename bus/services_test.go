package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

var began = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// announced makes a replica known until it is stopped or the test ends.
func announced(t *testing.T, b *bus.Bus, service, id string, projects ...forge.ProjectID) (stop func()) {
	t.Helper()
	stop, err := b.Presence.Announce(wait.Context(t), presence.Replica{
		Service: service, ID: forge.ReplicaID(id), Version: "v1", Started: began, Projects: projects,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stop
}

// services asks until a runner is up.
func services(t *testing.T, b *bus.Bus, project forge.ProjectID, brief bool) (got requests.Services) {
	t.Helper()
	ctx := wait.Context(t)
	wait.Until(t, "a runner answers", func() bool {
		var err error
		got, err = b.Submissions.Services(ctx, project, "ada", brief)
		if err != nil && !errors.Is(err, requests.ErrRunnerDown) {
			t.Fatal(err)
		}
		return err == nil
	})
	return got
}

// decided appends a decision to the journal of a project.
func decided(t *testing.T, b *bus.Bus, project forge.ProjectID) {
	t.Helper()
	key := forge.Key{Project: project}
	_, err := b.Journal.Append(t.Context(), key, chain.Head{}, forge.Record{
		Events: []forge.Event{{ID: "e", To: key, Message: &forge.Reflect{}}}, Summary: forge.Summary{Key: key},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	for _, brief := range []bool{true, false} {
		if _, err := b.Submissions.Services(ctx, "shop", "ada", brief); !errors.Is(err, requests.ErrRunnerDown) {
			t.Errorf("without a runner: %v", err)
		}
	}
	decider(ctx, t, s.Connect(t))
	if diff := cmp.Diff(requests.Services{Project: "shop", Unproven: true}, services(t, b, "shop", false)); diff != "" {
		t.Errorf("nobody is there: %s", diff)
	}
	decided(t, b, "old")
	announced(t, s.Connect(t), "runner", "runner-1")
	announced(t, s.Connect(t), "reviewer", "r2", "site")
	stop := announced(t, s.Connect(t), "reviewer", "r1", "shop", "site")
	want := requests.Services{
		Project: "shop", Known: true, Unproven: true,
		Services: []requests.Service{
			{Service: "reviewer", Running: 2, Serves: true, Replicas: []requests.Replica{
				{Replica: "r1", Version: "v1", Started: began},
				{Replica: "r2", Version: "v1", Started: began, Lacks: true},
			}},
			{Service: "runner", Running: 1, Replicas: []requests.Replica{{Replica: "runner-1", Version: "v1", Started: began}}},
		},
	}
	wait.Until(t, "all of them answer", func() bool { return cmp.Equal(want, services(t, b, "shop", false)) }) // a busy one is left out of an answer
	for project, known := range map[forge.ProjectID]bool{"shop": true, "old": true, "shpo": false} {
		got := services(t, b, project, true)
		if got.Known != known || got.Services != nil || got.Project != project {
			t.Errorf("%s: %+v", project, got)
		}
		if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), "site") || project != "old" && strings.Contains(string(text), "old") {
			t.Errorf("whoever asks for %s learns of others: %s, %v", project, text, err)
		}
	}
	stop()
	wait.Until(t, "whoever stops serves nothing", func() bool { return !services(t, b, "shop", false).Known })
	if got := services(t, b, "old", true); !got.Known {
		t.Error("a project with a journal is known, whoever runs")
	}
}

// A service that is slow is waited for before a project is called unknown, and no longer than
// until it answers.
func TestSlowServiceIsWaitedFor(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	decider(ctx, t, s.Connect(t))
	announced(t, b, "analyzer", "a", "site")
	services(t, b, "site", true)
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	asked := make(chan *nats.Msg, 10)
	if _, err := nc.ChanSubscribe("$SRV.INFO", asked); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	known := make(chan bool, 1)
	go func() {
		got, err := b.Submissions.Services(ctx, "shop", "ada", true)
		known <- err == nil && got.Known
	}()
	m := wait.For(t, asked)
	if got := services(t, b, "site", true); !got.Known { // others are answered meanwhile
		t.Errorf("got %+v", got)
	}
	answer := `{"name": "pfl-forge-implementer", "metadata": {"replica": "slow", "projects": "shop"}}`
	if err := m.Respond([]byte(answer)); err != nil {
		t.Fatal(err)
	}
	if !wait.For(t, known) {
		t.Error("the project of the slow service is unknown")
	}
}

// However much services say of themselves, the answer is one that the server carries.
func TestServicesAnswerIsBounded(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	decider(ctx, t, s.Connect(t))
	var many []forge.ProjectID
	for n := range 2100 {
		many = append(many, forge.ProjectID(fmt.Sprintf("project-number-%d-%s", n, strings.Repeat("x", 15))))
	}
	last := forge.ProjectID("zzz") // beyond all bounds of the lists
	for n := range 30 {
		announced(t, b, "implementer", fmt.Sprintf("r%d", n), append(slices.Clone(many), last)...)
		announced(t, b, "reviewer", fmt.Sprintf("r%d", n), many...)
		announced(t, b, fmt.Sprintf("made-up-%d", n), "r", many...)
	}
	// What is slow to answer is left out, on a busy machine; so this asks until all was heard.
	wait.Until(t, "what was asked for stands in the answer", func() bool {
		got := services(t, b, last, false)
		return len(got.Services) == 2 && got.Services[0].Serves && !got.Services[1].Serves
	})
	var got requests.Services
	wait.Until(t, "both services answer", func() bool {
		got = services(t, b, "shop", false)
		return len(got.Services) == 2
	})
	if got.Known {
		t.Error("a project is known that nobody has")
	}
	if text, err := json.Marshal(got); err != nil || len(text) > 8<<20 {
		t.Errorf("the answer has %d bytes; %v", len(text), err)
	}
}

// Who lacks a right is told at once which one.
func TestMissingRightsAreNamed(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	runner := connectAs(ctx, t, s, "runner", "RUNNER")
	decider(ctx, t, runner)
	announced(t, connectAs(ctx, t, s, "reviewer", "REVIEWER"), "reviewer", "r", "shop")
	ada, scanner := connectAs(ctx, t, s, "ada", "ADA"), connectAs(ctx, t, s, "scanner", "SCANNER")
	if got := services(t, ada, "shop", false); !got.Known || len(got.Services) != 1 {
		t.Errorf("ada sees %+v", got)
	}
	for _, c := range []struct {
		b    *bus.Bus
		do   func(context.Context, *bus.Bus) error
		want string
	}{
		{ada, func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Submissions.Services(ctx, "bank", "ada", true)
			return err
		}, "publishing on forge.api.bank.by.ada.services"},
		{ada, func(ctx context.Context, b *bus.Bus) error {
			ev := submit(forge.Key{Project: "bank", Intent: "a"})
			ev.Actor = "ada"
			_, err := b.Submissions.Ask(ctx, ev)
			return err
		}, "publishing on forge.intent.bank.by.ada.submit"},
		{scanner, func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Submissions.Services(ctx, "shop", "ada", true)
			return err
		}, "publishing on forge.api.shop.by.ada.services"},
		{scanner, func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Journal.Summaries(ctx, "shop")
			return err
		}, "publishing on $JS.API.STREAM.INFO.FORGE_JOURNAL"},
		{scanner, func(ctx context.Context, b *bus.Bus) error { return b.Prepared(ctx) }, "publishing on $JS.API.STREAM.INFO.FORGE_JOURNAL"},
		{ada, func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Presence.Gather(ctx, nil)
			return err
		}, "listening on _INBOX_services."},
		{scanner, func(ctx context.Context, b *bus.Bus) error {
			stop, err := b.Presence.Announce(ctx, presence.Replica{Service: "reviewer", ID: "r"})
			stop()
			return err
		}, "listening on $SRV.>"},
	} {
		if err := c.do(ctx, c.b); !errors.Is(err, requests.ErrNotAllowed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want ...%s", err, c.want)
		}
	}
	if _, err := ada.Journal.Summaries(ctx, "shop"); err != nil {
		t.Errorf("a right that is missing takes others away: %v", err)
	}
}
