package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// TestOpenIntentsAreKept: while intents end, a runner keeps which of them are open. The
// next one goes on with those, and beside a list that is garbage, or of another journal.
func TestOpenIntentsAreKept(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	stop := runUntil(t, s.Connect(t), 2)
	startWorkers(t, b, succeed)
	await(t, b, forge.StatusDone, submitSome(t, b, "a", 6)...)
	wait.Until(t, "the list of open intents is kept", func() bool { return openOf(t, b) != nil })
	stop()
	now, err := b.Journal.Open(t.Context(), *openOf(t, b))
	if err != nil || now.Whole || len(now.Intents) > 0 {
		t.Errorf("%+v, %v; want none, without a look at every journal", now, err)
	}
	for name, list := range map[string]string{"b": "garbage", "c": `{"Seq": 1, "Intents": [{"Project": "web", "Intent": "nobody"}]}`} {
		if err := b.Objects.Put(t.Context(), objects.Name{Kind: objects.Open, ID: machine.Rules()}, strings.NewReader(list)); err != nil {
			t.Fatal(err)
		}
		stop := runUntil(t, s.Connect(t), 2)
		await(t, b, forge.StatusDone, submitSome(t, b, name, 1)...)
		stop()
	}
}

// TestForgottenIntentIsFound: an open intent that the list lacks, however that came,
// is in it again once so much was decided that the list is compared with the journals.
func TestForgottenIntentIsFound(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	stop := runUntil(t, s.Connect(t), 100)
	forgotten := forge.Key{Project: project, Intent: submitSome(t, b, "forgotten", 1)[0]}
	wait.Until(t, "it waits for a worker, of which there is none", func() bool {
		sum, err := b.Journal.Summary(t.Context(), forgotten)
		return err == nil && len(sum.Open) > 0
	})
	stop()
	list, err := b.Journal.Open(t.Context(), journal.Open{})
	if err != nil || !slices.Equal(list.Intents, []forge.Key{forgotten}) {
		t.Fatal(list, err)
	}
	list.Intents = nil
	data, err := json.Marshal(list)
	if err == nil {
		err = b.Objects.Put(t.Context(), objects.Name{Kind: objects.Open, ID: machine.Rules()}, bytes.NewReader(data))
	}
	if err != nil {
		t.Fatal(err)
	}
	runUntil(t, s.Connect(t), 2)
	for n := 0; !slices.Contains(openOf(t, b).Intents, forgotten); n++ {
		if n == 200 {
			t.Fatalf("after %d intents more the list has %d, and not this one", n, len(openOf(t, b).Intents))
		}
		submitSome(t, b, fmt.Sprintf("other%d-", n), 1)
	}
}

// TestStartBesideANewerRecord: intents that a newer version went on with are left
// alone, and no other one with them: what was under way when the runner ended is
// in force again, and the next runner says that it is ready. Of one such record
// this version understands the summary, of the other one it does not.
func TestStartBesideANewerRecord(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	stop := runUntil(t, s.Connect(t), 100)
	ids := submitSome(t, b, "a", 3)
	stop()
	s.AppendNewer(t, "FORGE_JOURNAL", "forge.journal.web."+string(ids[0]))
	appendNewerSummary(t, s, "forge.journal.web."+string(ids[1]))
	s.DeleteStream(t, "FORGE_COMMANDS") // so that it has to be issued again
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	cfg := runner.Config{Bus: s.Connect(t), Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }}
	go func() { ended <- runner.Run(ctx, cfg) }()
	select {
	case <-ready:
	case <-wait.Context(t).Done():
		t.Error("the runner is never ready")
	}
	startWorkers(t, b, succeed)
	wait.Until(t, "the other intent is done", func() bool {
		sum, err := b.Journal.Summary(t.Context(), forge.Key{Project: project, Intent: ids[2]})
		return err == nil && sum.Status == forge.StatusDone
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// appendNewerSummary appends a record to a journal whose summary has a field
// that this version does not know.
func appendNewerSummary(t *testing.T, s *bustest.Server, subject string) {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	in, err := js.Stream(t.Context(), "FORGE_JOURNAL")
	if err != nil {
		t.Fatal(err)
	}
	last, err := in.GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	m := &nats.Msg{Subject: subject, Header: nats.Header{"Forge-Kind": last.Header["Forge-Kind"]}}
	m.Data = append(slices.Clip(last.Data), "\x1a\x03\xf8\x3f\x01"...) // field 1023 of the summary, which is field 3
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// openOf returns the list of open intents that is kept; nil if there is none.
func openOf(t *testing.T, b *bus.Bus) *journal.Open {
	t.Helper()
	o, err := b.Objects.Read(t.Context(), objects.Name{Kind: objects.Open, ID: machine.Rules()})
	if err != nil {
		return nil
	}
	var list journal.Open
	if err := json.Unmarshal(o.Content, &list); err != nil || slices.Contains(list.Intents, forge.Key{}) {
		t.Fatal(list, err)
	}
	return &list
}
