package bus_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestWordsOfRemovedAccounts removes ada and the reviewer from the file of keys while
// the runner goes on. What ada asks is refused. The reviewer's result is shown, and
// taken once the key is there again: work is not lost by a file that is out of date.
func TestWordsOfRemovedAccounts(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	st := newStrict(t)
	ada, reviewer := st.connect("ada", "ada"), st.connect("reviewer", "reviewer")
	ask := func(id string) (forge.Ruling, error) {
		return ada.Submissions.Ask(ctx, forge.Event{ID: id, To: key, Actor: "ada", Message: &forge.Cancel{}})
	}
	if r, err := ask("1"); err != nil || r.Decision != forge.Applied {
		t.Fatalf("got %+v, %v", r, err)
	}
	<-st.seen
	st.trust(trusted(t, "ada", "reviewer"))
	wait.Until(t, "ada is refused", func() bool {
		r, err := ask(fmt.Sprint("2-", time.Now().UnixNano()))
		return err == nil && r.Decision == forge.Refused && strings.Contains(r.Reason, "not among the trusted keys")
	})
	for len(st.seen) > 0 {
		<-st.seen // before the file was read again
	}
	done := publish(ctx, reviewer, forge.Result{
		To: key, Attempt: forge.Attempt{Task: "fix-login-001", Step: forge.StepReview, Number: 1, Claim: 1}, Replica: "reviewer-0",
		Output: &forge.Failure{Reason: forge.FailCrashed},
	})
	wait.Until(t, "the result is shown", func() bool {
		return strings.Contains(st.reason("forge.result.review.shop.fix-login", "reviewer-0"), "not among the trusted keys")
	})
	if len(st.seen) > 0 {
		t.Errorf("a runner was given %+v", <-st.seen)
	}
	st.trust(trusted(t))
	if err := wait.For(t, done); err != nil {
		t.Errorf("the result: %v", err)
	}
	if ev := wait.For(t, st.seen); ev.Via != "reviewer" {
		t.Errorf("got %+v", ev)
	}
}

// TestNewKeysAreWaitedFor: what is signed by a key that the runner does not
// know yet, since the file follows, is decided on when it does.
func TestNewKeysAreWaitedFor(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	st := &strict{t: t, s: s, path: filepath.Join(t.TempDir(), "allowed_signers")}
	st.trust(trusted(t, "ada"))
	keys, err := signed.OpenKeys(st.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys.Settling = wait.Patience
	b := st.connect("runner", "runner")
	if err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	ada := st.connect("ada", "ada")
	asked := make(chan error, 1)
	go func() {
		_, err := ada.Submissions.Ask(ctx, forge.Event{ID: "1", To: key, Actor: "ada", Message: &forge.Cancel{}})
		asked <- err
	}()
	admin := connectAs(ctx, t, s, "admin", "ADMIN")
	serveWith(t, b, decide.Config{Authors: keys}, func(ctx context.Context, d *decide.Delivery) error {
		d.Respond(ctx, forge.Ruling{EventID: d.Event.ID, Decision: forge.Applied})
		return nil
	})
	nc, _ := as(t, s, "admin")
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it was delivered, and is to come again", func() bool {
		cons, err := js.Consumer(ctx, "FORGE_INTENTS", "runner")
		return err == nil && cons.CachedInfo().NumRedelivered+cons.CachedInfo().NumAckPending > 0
	})
	st.trust(trusted(t))
	if err := wait.For(t, asked); err != nil {
		t.Error(err)
	}
	if dead, err := admin.Dead(ctx); err != nil || len(dead) > 0 {
		t.Errorf("dead letters: %+v, %v", dead, err)
	}
}
