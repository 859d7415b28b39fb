package turns_test

import (
	"fmt"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestOneHasTheTurn: of two processes that both counted what is there, the one
// that took the turn first stores nothing any more, so that both together do not
// exceed the bound. Whoever takes the turn counts what the others have stored.
func TestOneHasTheTurn(t *testing.T) {
	const project forge.ProjectID = "shop"
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	list := []*bus.Bus{s.Connect(t), s.Connect(t)}
	n := 0
	take := func(i int) func() bool {
		t.Helper()
		store, err := list[i].Turns.Take(ctx, project)
		if err != nil {
			t.Fatal(err)
		}
		return func() bool {
			n++
			stored, err := store(fmt.Sprintf("forge.command.analyze.any.shop.i-%d.-.1.1", n))
			if err != nil {
				t.Fatal(err)
			}
			return stored
		}
	}
	for _, b := range list {
		b.Turns.Begin(3)
	}
	first := take(0)
	if !first() {
		t.Error("who has the turn cannot store")
	}
	second := take(1)
	if first() {
		t.Error("who had the turn before can store")
	}
	for range 2 {
		if !second() {
			t.Error("who has the turn cannot store as many as there is room for")
		}
	}
	if second() || take(0)() {
		t.Error("more are stored than may be")
	}
}

// TestRoomIsNotRemembered: how much room there was when workers were quick says
// nothing about later. A project that comes then does not have all of it.
func TestRoomIsNotRemembered(t *testing.T) {
	ctx := wait.Context(t)
	b := bustest.StartServer(t).Connect(t)
	b.Turns.Begin(0)
	b.Turns.Believe(subjects.Line{Step: forge.StepAnalyze}, 500)
	atOnce := 0
	for n := range 20 {
		c := forge.Command{
			To:      forge.Key{Project: "shop", Intent: forge.IntentID(fmt.Sprintf("i-%d", n))},
			Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1},
		}
		subject, stored, err := b.Turns.Place(ctx, &c)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(subject, ".held.") {
			atOnce++
		}
		defer stored(0)
	}
	if atOnce > 3 {
		t.Errorf("%d of 20 commands go to the workers at once", atOnce)
	}
}

// TestOneLineFails: a line that cannot be looked at, here since its connection
// is closed, keeps no other from moving on, also those that come after it.
func TestOneLineFails(t *testing.T) {
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b, closed := s.Connect(t), s.Connect(t)
	b.Turns.Begin(0)
	for _, c := range []forge.Command{
		{To: forge.Key{Project: "shop", Intent: "i-1"}, Attempt: forge.Attempt{Step: forge.StepImplement, Task: "i-1-001", Number: 1, Claim: 1}},
		{To: forge.Key{Project: "shop", Intent: "i-2"}, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1}},
	} {
		if err := b.Turns.Held(ctx, &c); err != nil {
			t.Fatal(err)
		}
	}
	b.Turns.LookBy(subjects.Line{Step: forge.StepImplement}, closed.Turns)
	closed.Close()
	if _, err := b.Turns.Round(ctx); err == nil {
		t.Error("it is not said that a line cannot be looked at")
	}
	// No journal waits for the result of the other one, so its turn removes it.
	left, err := b.Turns.Waiting(ctx)
	if err != nil || len(left) != 1 || !strings.Contains(left[0], ".implement.") {
		t.Errorf("these wait: %q, %v", left, err)
	}
}

// TestWithdrawnFromReplica: what is at the workers for one replica counts no
// more once its attempt is withdrawn, whether that replica is there or gone.
func TestWithdrawnFromReplica(t *testing.T) {
	ctx := wait.Context(t)
	b := bustest.StartServer(t).Connect(t)
	b.Turns.Begin(1)
	store, err := b.Turns.Take(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if stored, err := store("forge.command.implement.on.gone.shop.i-1.i-1-001.2.1"); !stored || err != nil {
		t.Fatal(stored, err)
	}
	key, attempt := forge.Key{Project: "shop", Intent: "i-1"}, forge.Attempt{Step: forge.StepImplement, Task: "i-1-001", Number: 2, Claim: 1}
	if err := b.Turns.Withdraw(ctx, key, []forge.Attempt{attempt}, true); err != nil {
		t.Fatal(err)
	}
	if store, err = b.Turns.Take(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	if stored, err := store("forge.command.implement.any.shop.i-2.i-2-001.1.1"); !stored || err != nil {
		t.Errorf("what was withdrawn is counted: %t, %v", stored, err)
	}
}
