package runner_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/natsd"
)

// reference is a loop that does the same durable writes and reads as a runner
// with its workers does for one intent with one task, and nothing else: no
// state, no encoding, no decisions. The one order that it keeps is that of the base
// branch, which moves by one change at a time: a change lands when the one before has
// been written down. What it cannot do faster, nobody can on this server.
type reference struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	meet   *meeting
	states []projectState
	stop   []func()
}

// projectState is one project's.
type projectState struct {
	waiting chan chan error // who waits for a decision
	queue   chan string     // intents that wait for their turn to land
	merged  chan struct{}   // one is merged, and that is written down
}

func (r *reference) state(id string) *projectState { return &r.states[place(id, len(r.states))] }

// flowOrder is what follows from what, as the rules of flow have it: each message
// leads to the writes on its right. J is a decision in the intent's journal, L
// one in the project's; c: is a command, whose worker answers with r:; w: is an
// event between machines.
var flowOrder = map[string][]string{
	"submit":      {"J", "w:enter"},
	"w:enter":     {"L", "w:admitted"},
	"w:admitted":  {"J", "c:analyze"},
	"r:analyze":   {"J", "c:implement", "w:planned"},
	"w:planned":   {"L"},
	"r:implement": {"J", "c:rebase"},
	"r:rebase":    {"J", "c:review"},
	"r:review":    {"J", "w:land"},
	"w:land":      {"L", "c:merge"},
	"r:merge":     {"L", "w:merged"},
	"w:merged":    {"J", "c:reflect", "w:end"},
	"w:end":       {"L"},
	"r:reflect":   {"J"},
}

// Sizes of the messages, in bytes: about what ours have.
var sizes = map[string]int{"J": 1500, "L": 500, "c": 900, "r": 400, "w": 300, "submit": 400}

func newReference(b testing.TB, s *natsd.Server, projects int) *reference {
	b.Helper()
	nc, err := nats.Connect(s.URL(), nats.Token(s.Token()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	for _, cfg := range []jetstream.StreamConfig{
		{Name: "REF_INTENTS", Subjects: []string{"ref.submit.>"}},
		{Name: "REF_JOURNAL", Subjects: []string{"ref.J.>", "ref.L.>"}},
		{Name: "REF_COMMANDS", Subjects: []string{"ref.c.>"}, Storage: jetstream.MemoryStorage},
		{Name: "REF_WAKES", Subjects: []string{"ref.w.>"}, Storage: jetstream.MemoryStorage, Retention: jetstream.WorkQueuePolicy},
	} {
		if _, err := js.CreateOrUpdateStream(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
	}
	r := &reference{nc: nc, js: js, meet: newMeeting(), states: make([]projectState, projects)}
	for i := range r.states {
		r.states[i] = projectState{waiting: make(chan chan error, 1000), queue: make(chan string, 10_000), merged: make(chan struct{})}
	}
	r.consume(b, "REF_INTENTS", "ref.submit.>", r.decide)
	r.answer(b, nc)
	r.consume(b, "REF_WAKES", "ref.w.>", r.decide)
	for _, step := range forge.Steps() {
		r.consume(b, "REF_COMMANDS", "ref.c."+string(step)+".>", r.work)
	}
	b.Cleanup(func() {
		for _, stop := range r.stop {
			stop()
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	for i := range r.states {
		go r.decideForAll(ctx, i)
		go r.mergeOneByOne(ctx, i)
	}
	return r
}

// decideForAll is the project: what waits for it shares a write, as ours does.
func (r *reference) decideForAll(ctx context.Context, n int) {
	l := &r.states[n]
	for {
		var batch []chan error
		select {
		case first := <-l.waiting:
			batch = append(batch, first)
		case <-ctx.Done():
			return
		}
		for more := true; more && len(batch) < 64; {
			select {
			case next := <-l.waiting:
				batch = append(batch, next)
			default:
				more = false
			}
		}
		err := r.publish(ctx, "L", "x", strconv.Itoa(n))
		for _, done := range batch {
			done <- err
		}
	}
}

// mergeOneByOne has the next change merged when the one before is written down.
func (r *reference) mergeOneByOne(ctx context.Context, n int) {
	l := &r.states[n]
	for {
		select {
		case id := <-l.queue:
			if r.publish(ctx, "c", "merge", id) != nil {
				return
			}
			select {
			case <-l.merged:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// stored returns how many messages the streams on disk hold whose names begin like
// that.
func (r *reference) stored(b testing.TB, prefix string) float64 {
	b.Helper()
	var n uint64
	list := r.js.ListStreams(b.Context())
	for info := range list.Info() {
		if info.Config.Storage == jetstream.FileStorage && strings.HasPrefix(info.Config.Name, prefix) {
			n += info.State.LastSeq
		}
	}
	if list.Err() != nil {
		b.Fatal(list.Err())
	}
	return float64(n)
}

// consume handles the messages of a consumer, many at a time.
func (r *reference) consume(b testing.TB, stream, filter string, handle func(context.Context, string, string) error) {
	b.Helper()
	cons, err := r.js.CreateOrUpdateConsumer(b.Context(), stream, jetstream.ConsumerConfig{
		Durable: strings.NewReplacer(".", "-", ">", "all").Replace(filter), FilterSubject: filter,
		AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 10_000,
	})
	if err != nil {
		b.Fatal(err)
	}
	slots := make(chan struct{}, 64)
	cc, err := cons.Consume(func(m jetstream.Msg) {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			parts := strings.Split(m.Subject(), ".") // ref.<kind>.<what>.<id>
			what := parts[1] + ":" + parts[2]
			if parts[1] == "submit" {
				what = "submit"
			}
			if handle(context.Background(), what, parts[3]) == nil {
				_ = m.Ack()
			}
		}()
	})
	if err != nil {
		b.Fatal(err)
	}
	r.stop = append(r.stop, cc.Stop)
}

// answer handles results, which are stored nowhere: a worker keeps its result until
// the decision is journaled.
func (r *reference) answer(b testing.TB, nc *nats.Conn) {
	b.Helper()
	slots := make(chan struct{}, 64)
	sub, err := nc.QueueSubscribe("ref.r.>", "runner", func(m *nats.Msg) {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			parts := strings.Split(m.Subject, ".")
			if r.decide(context.Background(), "r:"+parts[2], parts[3]) == nil {
				_ = m.Respond(nil)
			}
		}()
	})
	if err != nil {
		b.Fatal(err)
	}
	r.stop = append(r.stop, func() { _ = sub.Unsubscribe() })
}

// decide makes the writes that follow from a message: the decision first.
func (r *reference) decide(ctx context.Context, what, id string) error {
	for _, next := range flowOrder[what] {
		kind, name, _ := strings.Cut(next, ":")
		if name == "" {
			name = "x"
		}
		if err := r.write(ctx, kind, name, id); err != nil {
			return err
		}
		if what == "r:merge" && kind == "L" {
			r.state(id).merged <- struct{}{}
		}
	}
	if what == "r:reflect" {
		r.meet.arrive(id)
	}
	return nil
}

func (r *reference) write(ctx context.Context, kind, name, id string) error {
	switch {
	case kind == "L":
		done := make(chan error, 1)
		r.state(id).waiting <- done
		return <-done
	case kind == "c" && name == "merge":
		r.state(id).queue <- id
		return nil
	}
	return r.publish(ctx, kind, name, id)
}

func (r *reference) work(_ context.Context, what, id string) error {
	step := strings.TrimPrefix(what, "c:")
	r.meet.received(id, step)
	r.meet.done(id, step)
	_, err := r.nc.Request(fmt.Sprintf("ref.r.%s.%s", step, id), make([]byte, sizes["r"]), 10*time.Second)
	return err
}

func (r *reference) publish(ctx context.Context, kind, name, id string) error {
	_, err := r.js.Publish(ctx, fmt.Sprintf("ref.%s.%s.%s", kind, name, id), make([]byte, sizes[kind]))
	return err
}

func (r *reference) submit(ctx context.Context, id forge.IntentID) error {
	return r.publish(ctx, "submit", "x", string(id))
}

func (r *reference) wait(id forge.IntentID) time.Time { return r.meet.wait(string(id)) }
