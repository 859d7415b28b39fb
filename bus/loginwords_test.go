package bus_test

import (
	"context"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/proof"
)

// TestWordsOfLogins checks that what a person who has logged in says is proven,
// by a runner and later by a journal alone, for as long as the login is good
// and the key of the auth service counts; and that the key says nothing else.
func TestWordsOfLogins(t *testing.T) {
	t.Parallel()
	l := newLogins(t)
	l.serve()
	seed, err := bus.ReadSeed(l.nkey)
	if err != nil {
		t.Fatal(err)
	}
	auth, err := proof.Derive(seed, string(access.Auth))
	if err != nil {
		t.Fatal(err)
	}
	line := auth.AccountSigner(string(access.Auth))
	keys := signed.NewKeys(proof.Signers{line})
	ada, err := l.login("ada")
	if err != nil {
		t.Fatal(err)
	}
	// The whole way: a request over a connection by the login, to a runner that has authors proven.
	ctx := wait.Context(t)
	runner := connectAs(ctx, t, l.s, "admin", "ADMIN")
	if err := runner.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	seen := make(chan forge.Event, 10)
	serveWith(t, runner, decide.Config{Authors: keys}, func(ctx context.Context, d *decide.Delivery) error {
		d.Respond(ctx, forge.Ruling{EventID: d.Event.ID, Decision: forge.Applied, Intent: d.Event.To.Intent})
		seen <- d.Event
		return nil
	})
	cfg := bus.Config{URL: l.s.ClientURL(), Project: "shop"}
	if cfg.Person, err = ada.Use(&cfg); err != nil || cfg.Person != "ada" {
		t.Fatal(cfg.Person, err)
	}
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if r, err := b.Submissions.Ask(ctx, forge.Event{ID: "a", To: key, Actor: "ada", Message: &forge.Cancel{}}); err != nil || r.Decision != forge.Applied {
		t.Fatal(r, err)
	}
	ev := wait.For(t, seen)
	p, err := signed.Parse(ev.Signature)
	if err != nil || p.Certificate == "" || ev.Via != "ada" {
		t.Fatalf("%q, %+v, %v", ev.Via, p, err)
	}
	if who, err := keys.Confirm(&p); who != "ada" || err != nil {
		t.Error(who, err)
	}
	if who, err := signed.NewKeys(proof.Signers{keyOf(t, "auth").AccountSigner("auth")}).Confirm(&p); err == nil {
		t.Error("an unknown auth service certifies", who)
	}
	replaced := line
	replaced.Until = p.At.Add(-time.Hour)
	if who, err := signed.NewKeys(proof.Signers{replaced}).Confirm(&p); err == nil {
		t.Error("a key of the auth service that was replaced certifies", who)
	}
	mine, err := ada.Key()
	if err != nil {
		t.Fatal(err)
	}
	c, err := ada.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	bob, err := l.login("bob")
	if err != nil {
		t.Fatal(err)
	}
	other, err := bob.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	altered := c
	altered.Account = "bob"
	self, err := proof.Certify(mine, altered)
	if err != nil {
		t.Fatal(err)
	}
	result := signed.Author{Namespace: proof.NamespaceResult, Account: "ada"}
	for name, try := range map[string]struct {
		by   *proof.Certificate
		at   time.Time
		from signed.Author
	}{
		"another's certificate":       {&other, time.Now(), signed.Author{Namespace: proof.NamespaceAsk, Account: "bob"}},
		"an altered certificate":      {&altered, time.Now(), signed.Author{Namespace: proof.NamespaceAsk, Account: "bob"}},
		"certified by oneself":        {&self, time.Now(), signed.Author{Namespace: proof.NamespaceAsk, Account: "bob"}},
		"on another's subject":        {&c, time.Now(), signed.Author{Namespace: proof.NamespaceAsk, Account: "bob"}},
		"as a worker":                 {&c, time.Now(), result},
		"as a runner":                 {&c, time.Now(), signed.Author{Namespace: proof.NamespaceRelay, Account: "runner"}},
		"as a system":                 {&c, time.Now(), signed.Author{Namespace: proof.NamespaceSubmit, Account: "ada"}},
		"after the end":               {&c, c.Until.Add(5 * time.Minute), signed.Author{Namespace: proof.NamespaceAsk, Account: "ada"}},
		"before the beginning":        {&c, c.From.Add(-5 * time.Minute), signed.Author{Namespace: proof.NamespaceAsk, Account: "ada"}},
		"the key without certificate": {nil, time.Now(), signed.Author{Namespace: proof.NamespaceAsk, Account: "ada"}},
	} {
		var by *proof.Key
		if try.by != nil {
			by = mine.Certified(try.by)
		} else if by, err = proof.Derive([]byte(strings.Repeat("ada-", 32)), "ada"); err != nil {
			t.Fatal(err)
		}
		m := &signed.Message{Subject: "forge.intent.shop.by.ada.cancel", Payload: []byte("x")}
		p, err := signed.Sign(by, m, try.at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keys.Check(m, []string{p.String()}, try.at, try.from); err == nil {
			t.Errorf("%s is believed", name)
		}
	}
}
