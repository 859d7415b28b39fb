package bus_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// elsewhere is an installation with something to lose.
type elsewhere struct {
	*strict

	runner *bus.Bus
	head   chain.Head // of the journal of key
	// arrived has the messages that come to the protected subjects.
	arrived *nats.Subscription
	before  map[string]uint64
}

func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	ctx := wait.Context(t)
	e := &elsewhere{strict: newStrict(t)}
	e.runner = e.connect("runner", "runner")
	for _, k := range []forge.Key{key, {Project: "bank", Intent: key.Intent}, {Project: "shop"}} {
		var head chain.Head
		for n := range 2 {
			var err error
			if head, err = e.runner.Journal.Append(ctx, k, head, record(k, n)); err != nil {
				t.Fatal(err)
			}
		}
		if k == key {
			e.head = head
		}
	}
	for _, role := range access.Services() {
		for _, step := range forge.Steps() {
			if step.Service() != string(role) {
				continue
			}
			order := forge.Command{To: key, Attempt: forge.Attempt{Task: "fix-login-001", Step: step, Number: 1, Claim: 1}, Intent: forge.Intent{ID: key.Intent}}
			order.Input = inputOf(&order)
			if order.Input == nil {
				continue
			}
			if err := e.runner.Effects.Dispatch(ctx, key, forge.Effects{Commands: []forge.Command{order}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	worker, name := e.connect("implementer", "implementer"), objects.TranscriptName(key, try("fix-login-001", 7))
	if err := worker.Objects.Put(ctx, name, strings.NewReader("done")); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(e.admin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateConsumer(ctx, streams.Events, jetstream.ConsumerConfig{Durable: "tracker", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "forge.event.shop.fix-login.done", []byte(`{"specversion":"1.0","id":"1"}`)); err != nil {
		t.Fatal(err)
	}
	e.arrived, err = e.admin.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.arrived.SetPendingLimits(-1, -1); err != nil {
		t.Fatal(err)
	}
	e.before = e.held(ctx, t)
	return e
}

// inputOf returns an input of the step of a command.
func inputOf(c *forge.Command) forge.Input {
	for _, in := range forge.Inputs() {
		if c.Input = in; c.HasInput() {
			return in
		}
	}
	return nil
}

// held counts the messages of each stream that nobody but a runner or the thief
// may write to, and the consumers of all.
func (e *elsewhere) held(ctx context.Context, t *testing.T) map[string]uint64 {
	t.Helper()
	js, err := jetstream.New(e.admin)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]uint64{}
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		there[info.Config.Name] = info.State.Msgs
		s, err := js.Stream(ctx, info.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		names := s.ConsumerNames(ctx)
		for name := range names.Name() {
			there[info.Config.Name+"."+name] = 1
		}
		if err := names.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return there
}

// check fails the test unless all is as it was, apart from garbage.
func (e *elsewhere) check(t *testing.T) {
	t.Helper()
	ctx := wait.Context(t)
	after := e.held(ctx, t)
	wait.Until(t, "the server has answered all", func() bool {
		before := after
		after = e.held(ctx, t)
		return maps.Equal(before, after)
	})
	for _, name := range slices.Sorted(maps.Keys(e.before)) {
		if after[name] < e.before[name] && !strings.HasPrefix(name, streams.Commands) && !strings.HasPrefix(name, streams.Wakes) && name != streams.Leases {
			t.Errorf("%s had %d, and has %d", name, e.before[name], after[name])
		}
	}
	for name := range after {
		if _, ok := e.before[name]; !ok && !strings.HasPrefix(name, streams.Commands+".") {
			t.Errorf("%s is new", name)
		}
	}
	for _, k := range []forge.Key{key, {Project: "bank", Intent: key.Intent}, {Project: "shop"}} {
		records, head, err := e.runner.Journal.Load(ctx, k)
		if err != nil || len(records) != 2 || head.Broken != nil {
			t.Errorf("the journal of %s has %d records, %v, %v", k, len(records), head.Broken, err)
			continue
		}
		if _, err := e.runner.Journal.Append(ctx, k, head, record(k, 3)); err != nil {
			t.Errorf("the journal of %s does not go on: %v", k, err)
		}
	}
	if records, _, err := e.runner.Journal.Load(ctx, forge.Key{Project: "shop", Intent: "ghost"}); err != nil || len(records) > 0 {
		t.Errorf("there is a ghost: %+v, %v", records, err)
	}
	if o, err := e.runner.Objects.Read(ctx, objects.TranscriptName(key, try("fix-login-001", 7))); err != nil || string(o.Content) != "done" {
		t.Errorf("the transcript is %+v, %v", o, err)
	}
	e.checkArrived(t)
	// What comes to a runner from now on is decided: it is not held up.
	last := message{about: "the last one", author: "ada", subject: "forge.intent.shop.by.ada.cancel", mark: "last"}
	var err error
	if last.data, err = wire.Events.Marshal(&forge.Event{ID: last.mark, To: key, Actor: "ada", Message: &forge.Cancel{}}); err != nil {
		t.Fatal(err)
	}
	send(t, e.admin, &last, keyOf(t, "ada"), time.Now())
	got := e.await([]message{last})
	if _, ok := got[last.mark]; !ok || len(got) > 1 {
		t.Errorf("a runner was given %+v", got)
	}
	wake := forge.Event{ID: "to-project", To: forge.Key{Project: key.Project}, Actor: string(key.Intent), Message: &forge.AdmitRun{Run: 1}}
	if err := e.runner.Effects.Dispatch(ctx, key, forge.Effects{Outbox: []forge.Event{wake}}); err != nil {
		t.Fatal(err)
	}
	for ev := wait.For(t, e.seen); ev.ID != wake.ID; ev = wait.For(t, e.seen) {
		t.Errorf("a runner was given %+v", ev)
	}
}

// inJSON reports whether the server answers a request in JSON alone.
func inJSON(subject string) bool {
	return !strings.HasPrefix(subject, "$JS.API.DIRECT.") && !strings.HasPrefix(subject, "$JS.API.CONSUMER.MSG.NEXT.")
}

// asThief is a connection of an account whose refusals nobody counts: the
// server refuses the subjects of acknowledgements for answers.
func (e *elsewhere) asThief(t *testing.T, account string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(e.s.ClientURL(), nats.UserInfo(account, strings.ToUpper(account)), nats.CustomInboxPrefix("_INBOX_"+account),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// firstOfACopy begins the first part of a stream's copy: it is compressed in the format S2.
var firstOfACopy = []byte("\xff\x06\x00\x00S2sTwO")

// checkArrived fails the test if something came to a protected subject that could be
// taken for something: neither an answer of the server without content or in JSON,
// nor a copy by its header, nor a command. The first part of a stream's copy, which
// goes where the account backup wants it, is garbage by its first bytes; what a later
// part can be is in the guide, among what a stolen credential of that account can do.
func (e *elsewhere) checkArrived(t *testing.T) {
	t.Helper()
	bad := map[string]int{}
	for {
		m, err := e.arrived.NextMsg(10 * time.Millisecond)
		if err != nil {
			break
		}
		own := m.Reply != "" && !strings.HasPrefix(m.Reply, "$JS.ACK.") // what an account, or this test, has published itself
		if own || !slices.Contains(protected, m.Subject) || len(m.Data) == 0 || m.Header.Get("Nats-Stream") != "" || bytes.HasPrefix(m.Data, firstOfACopy) {
			continue
		}
		if bytes.HasPrefix(m.Data, []byte("{")) && !bytes.HasPrefix(m.Data, []byte(`{"set_aside"`)) && !bytes.Contains(m.Data, []byte(`"approve"`)) {
			continue
		}
		if _, err := wire.Commands.Unmarshal(m.Data); err == nil && strings.HasPrefix(m.Reply, "$JS.ACK."+streams.Commands+".") {
			continue
		}
		bad[fmt.Sprintf("%s: %.80q", m.Subject, m.Data)]++
	}
	for what, n := range bad {
		t.Errorf("%d times there came to %s", n, what)
	}
}
