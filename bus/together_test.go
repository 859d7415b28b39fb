package bus_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/proof"
)

// TestOlderRunnerTakesResults has results signed together, since a runner said
// that all can read that, come to a runner of before, which refuses what it
// cannot read: they come again, each with a signature of its own, also if a
// newer one that has not seen the older one yet answers others meanwhile.
func TestOlderRunnerTakesResults(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) { olderRunner(t, "") })
	t.Run("beside a newer one", func(t *testing.T) { olderRunner(t, "true") })
}

// olderRunner is TestOlderRunnerTakesResults where the last that a sender heard
// of signing together, when a result of it was refused, is said.
func olderRunner(t *testing.T, heard string) {
	t.Helper()
	s := bustest.StartServer(t)
	s.Connect(t)
	key := keyOf(t, "reviewer")
	worker, err := bus.Connect(wait.Context(t), bus.Config{URL: s.URL(), Name: t.Name(), Replicas: 1, Key: func() (*proof.Key, error) { return key, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Close)
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var mu sync.Mutex
	held, refused := []*nats.Msg(nil), 0
	answer := func(m *nats.Msg, header ...string) {
		a := nats.NewMsg(m.Reply)
		for i := 0; i < len(header); i += 2 {
			a.Header.Set(header[i], header[i+1])
		}
		if err := nc.PublishMsg(a); err != nil {
			t.Error(err)
		}
	}
	first := true
	if _, err := nc.Subscribe("forge.result.>", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case first: // by a newer runner
			first = false
			answer(m, "Forge-Decided", "true", "Forge-Signed-Together", "true")
		case signed.Together(m.Header.Get(signed.Header)):
			refused++
			answer(m, "Forge-Reason", "its signature cannot be read", "Forge-Signed-Together", heard)
		case refused < 2: // so that those that follow are gathered
			held = append(held, m)
		default:
			answer(m, "Forge-Decided", "true")
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	publish := func(i int) {
		r := forge.Result{
			To:      forge.Key{Project: "shop", Intent: forge.IntentID(fmt.Sprint("i", i))},
			Attempt: forge.Attempt{Task: forge.TaskID(fmt.Sprintf("i%d-001", i)), Step: forge.StepReview, Number: 1, Claim: 1},
			Output:  &forge.Failure{Reason: forge.FailCrashed, Message: "exit status 1"},
		}
		if err := worker.Results.Publish(wait.Context(t), r); err != nil {
			t.Errorf("result %d: %v", i, err)
		}
	}
	publish(0)
	var all sync.WaitGroup
	all.Go(func() { publish(1) })
	wait.Until(t, "one is not answered", func() bool { mu.Lock(); defer mu.Unlock(); return len(held) == 1 })
	for i := range 30 {
		all.Go(func() { publish(2 + i) })
	}
	wait.Until(t, "two came together and were refused", func() bool { mu.Lock(); defer mu.Unlock(); return refused >= 2 })
	mu.Lock()
	for _, m := range held {
		answer(m, "Forge-Decided", "true")
	}
	mu.Unlock()
	all.Wait()
}
