package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func result(claim int, replica forge.ReplicaID) forge.Result {
	return forge.Result{
		To: key, Replica: replica, Output: &forge.Analysis{NothingToDo: "it works"},
		Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: claim},
	}
}

// collect serves a runner that hands on every event.
func collect(t testing.TB, b *bus.Bus) <-chan forge.Event {
	t.Helper()
	seen := make(chan forge.Event, 1000)
	serve(t, b, func(_ context.Context, d *decide.Delivery) error {
		seen <- d.Event
		return nil
	})
	return seen
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	started := result(1, "a")
	started.Output = &forge.Started{}
	if err := b.Submissions.Send(ctx, submit(key)); err != nil {
		t.Fatal(err)
	}
	if err := b.Submissions.Send(ctx, forge.Event{ID: "last", To: key, Message: &forge.Cancel{}}); err != nil {
		t.Fatal(err)
	}
	seen := collect(t, b)
	counts := map[string]int{}
	for counts["last"] == 0 {
		counts[wait.For(t, seen).ID]++
	}
	// A result that comes again is the same event to the rules, which know it.
	for range 2 {
		for _, r := range []forge.Result{started, result(1, "a"), result(1, "b"), result(2, "a")} {
			if err := b.Results.Publish(ctx, r); err != nil {
				t.Fatal(err)
			}
			counts[wait.For(t, seen).ID]++
		}
	}
	if len(counts) != 6 {
		t.Errorf("got %v", counts)
	}
	for id, n := range counts {
		if want := 1 + strings.Count(id, "result/"); n != want {
			t.Errorf("%s came %d times, want %d", id, n, want)
		}
	}
}

func TestRetryIsUnlimited(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	const retries = 20 // more than errors are allowed
	var n atomic.Int32
	done := make(chan struct{})
	serve(t, b, func(_ context.Context, d *decide.Delivery) error {
		if n.Add(1) <= retries {
			return bus.Retry(time.Millisecond, errors.New("no journal"))
		}
		if d.Attempt != retries+1 {
			t.Errorf("delivery %d says that it is %d", retries+1, d.Attempt)
		}
		close(done)
		return nil
	})
	if err := b.Submissions.Send(ctx, submit(key)); err != nil {
		t.Fatal(err)
	}
	wait.For(t, done)
	if dead, err := b.Dead(ctx); err != nil || len(dead) != 0 {
		t.Errorf("dead letters: %+v, %v", dead, err)
	}
}

func TestPoison(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	good := make(chan struct{})
	serveWith(t, b, decide.Config{MaxErrors: 2}, func(_ context.Context, d *decide.Delivery) error {
		switch d.Event.To.Intent {
		case "errors":
			return errors.New("cannot")
		case "panics":
			panic("oh")
		case "terminates":
			return bus.Terminate("no way")
		}
		close(good)
		return nil
	})
	for _, id := range []forge.IntentID{"errors", "panics", "terminates"} {
		if err := b.Submissions.Send(ctx, submit(forge.Key{Project: "shop", Intent: id})); err != nil {
			t.Fatal(err)
		}
	}
	dead := deadLetters(ctx, t, b, 3)
	for i, want := range []string{"given up after 2 errors: cannot", "given up after 2 errors: panic: oh", "no way"} {
		if d := dead[uint64(i+1)]; d.Reason != want || d.Subject != "forge.intent.shop.by.=.submit" || d.Stream != "FORGE_INTENTS" {
			t.Errorf("dead letter of event %d is %+v, want %q", i+1, d, want)
		}
	}
	if err := b.Submissions.Send(ctx, submit(key)); err != nil {
		t.Fatal(err)
	}
	wait.For(t, good)
}

// deadLetters waits for n dead letters, and returns them by their sequence.
func deadLetters(ctx context.Context, t testing.TB, b *bus.Bus, n int) map[uint64]bus.DeadLetter {
	t.Helper()
	for {
		list, err := b.Dead(ctx)
		if err != nil {
			t.Fatalf("%d dead letters, not %d: %v", len(list), n, err)
		}
		if len(list) < n {
			continue
		}
		found := map[uint64]bus.DeadLetter{}
		for _, d := range list {
			found[d.Seq] = d
		}
		if len(list) != n {
			t.Fatalf("%d dead letters, want %d: %+v", len(list), n, list)
		}
		return found
	}
}

// TestOrderOfPeople checks that what is sent to an intent one after the other is
// decided one after the other, while other intents go on.
func TestOrderOfPeople(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	slow := make(chan struct{})
	other := make(chan struct{})
	order := make(chan string, 10)
	serve(t, b, func(_ context.Context, d *decide.Delivery) error {
		if d.Event.To != key {
			close(other)
			return nil
		}
		if forge.As[*forge.Submit](d.Event.Message) != nil {
			<-slow
		}
		order <- d.Event.ID
		return nil
	})
	for _, ev := range []forge.Event{
		submit(key),
		{ID: "edit", To: key, Message: &forge.Edit{}},
		{ID: "approve", To: key, Message: &forge.Approve{}},
		submit(forge.Key{Project: "shop", Intent: "other"}),
	} {
		if err := b.Submissions.Send(ctx, ev); err != nil {
			t.Fatal(err)
		}
	}
	wait.For(t, other)
	close(slow)
	for _, want := range []string{"submit-fix-login", "edit", "approve"} {
		if got := wait.For(t, order); got != want {
			t.Errorf("%s was decided when %s was due", got, want)
		}
	}
}

// Two systems that choose the same message id lose nothing by it: each of their
// submissions arrives, though the server knows the id already.
func TestMessageIDsOfTwoSystems(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	js := jetStream(t, raw(t, s))
	seen := collect(t, b)
	for _, subject := range []string{"forge.intent.shop.from.scanner.submit", "forge.intent.web.from.linter.submit"} {
		wait.Until(t, subject+" is stored", func() bool { // the server remembers ids for a moment
			m := nats.NewMsg(subject)
			m.Header.Set("Nats-Msg-Id", "4711")
			m.Data = []byte(`{"title": "Update the parser", "body": "It has a hole."}`)
			ack, err := js.PublishMsg(t.Context(), m)
			return err == nil && !ack.Duplicate
		})
	}
	got := map[forge.ProjectID]bool{}
	for range 2 {
		got[wait.For(t, seen).To.Project] = true
	}
	if !got["shop"] || !got["web"] {
		t.Errorf("arrived: %v", got)
	}
}

// TestNewerResult checks that a result of a newer worker is neither lost nor in
// the way of others.
func TestNewerResult(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	seen := collect(t, b)
	newer := nats.NewMsg("forge.result.analyze.shop.fix-login")
	newer.Data = []byte("\xf8\x3f\x01")
	nc := raw(t, s)
	var answer *nats.Msg
	wait.Until(t, "a worker is answered", func() (ok bool) {
		var err error
		answer, err = nc.RequestMsg(newer, time.Second)
		return err == nil
	})
	if after, err := time.ParseDuration(answer.Header.Get("Forge-Again")); err != nil || after <= 0 {
		t.Errorf("its worker is told %v", answer.Header)
	}
	if err := b.Results.Publish(ctx, result(1, "a")); err != nil {
		t.Fatal(err)
	}
	wait.For(t, seen)
	dead := deadLetters(ctx, t, b, 1)
	if !strings.HasPrefix(dead[0].Reason, "waits for a newer version") {
		t.Errorf("dead letter %+v", dead[0])
	}
}

func TestNoRuling(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	serve(t, b, func(context.Context, *decide.Delivery) error { return nil }) // and nobody is told
	patience := 50 * time.Millisecond
	wait.Until(t, "it is stored before its time is over, and not answered", func() bool {
		_, err := b.Submissions.Ask(wait.Briefly(t, patience), submit(key))
		patience *= 2
		return errors.Is(err, requests.ErrNoRuling)
	})
}

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	for name, ev := range map[string]forge.Event{
		"no id":       {To: key, Message: &forge.Cancel{}},
		"nothing":     {ID: "x", To: key},
		"a timer":     {ID: "x", To: key, Message: &forge.TimerFired{}},
		"the project": {ID: "x", To: key.ProjectKey(), Message: &forge.Approve{}},
		"a name":      {ID: "x", To: key, Actor: strings.Repeat("a", 201), Message: &forge.Cancel{}},
		"wildcard":    {ID: "x", To: forge.Key{Project: "*", Intent: "a"}, Message: &forge.Cancel{}},
		"no message":  {ID: "x", To: key},
		"enum":        {ID: "x", To: key, Message: &forge.Edit{Risk: new(forge.Risk("huge"))}},
	} {
		if err := b.Submissions.Send(ctx, ev); err == nil {
			t.Errorf("%s was sent", name)
		}
	}
}

// TestRunnersShare checks that every event goes to one of several runners.
func TestRunnersShare(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	const n = 300
	seen := make(chan string, 2*n)
	for range 3 {
		serve(t, s.Connect(t), func(_ context.Context, d *decide.Delivery) error {
			seen <- d.Event.ID
			return nil
		})
	}
	b := s.Connect(t)
	for i := range n {
		if err := b.Submissions.Send(ctx, submit(forge.Key{Project: "shop", Intent: forge.IntentID(fmt.Sprint("i", i))})); err != nil {
			t.Fatal(err)
		}
	}
	counts := map[string]int{}
	for range n {
		counts[wait.For(t, seen)]++
	}
	if len(counts) != n {
		t.Errorf("%d of %d events came", len(counts), n)
	}
}
