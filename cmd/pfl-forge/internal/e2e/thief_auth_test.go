package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/callout"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// certifies has a thief with the seed of the account auth let in two people of its own making,
// as the auth service does, with an issuer that it runs itself. Both approve the intent bad,
// by its plan, which is refused as nothing waits for that, and then the intent higher.
func (th *thief) certifies(bad, higher string) {
	t := th.c.t
	t.Helper()
	issuer := issuertest.Start(t)
	made := []string{"mallory", "trent"}
	path := filepath.Join(th.c.dir, "identities.yaml")
	text := fmt.Sprintf("issuers:\n  - url: %s\n    audience: pfl-forge\n    people:\n", issuer.URL)
	for _, name := range made {
		text += fmt.Sprintf("      - {is: %s, account: %s, projects: [%s]}\n", name, name, project)
	}
	write(t, path, text)
	book, err := identity.Open(path, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := bus.ReadSeed(th.c.seed("auth"))
	if err != nil {
		t.Fatal(err)
	}
	server := bus.Config{URL: th.c.url, TLS: bus.TLS{CA: filepath.Join(th.c.keys, "ca.crt")}, Project: project}
	own := server
	own.NKey, own.Name = th.c.seed("auth"), "auth"
	ctx, stop := context.WithCancel(wait.Context(t))
	ready := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		_ = bus.ServeLogins(ctx, own, callout.Config{ // it ends with its connection
			Seed: seed, Book: book, Accounts: func() ([]access.Account, error) { return nil, nil }, Lifetime: time.Hour, Now: time.Now,
			Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
		})
	})
	defer running.Wait()
	defer stop()
	wait.For(t, ready)
	for _, name := range made {
		login := bus.Login(filepath.Join(th.c.dir, "login-"+name))
		if _, err := login.Begin(ctx, server, func(key string) (string, error) {
			return issuer.Sign(map[string]any{"sub": name, "nonce": identity.Nonce(key)}), nil
		}); err != nil {
			t.Fatal(err)
		}
		as := server
		if as.Person, err = login.Use(&as); err != nil {
			t.Fatal(err)
		}
		b, err := bus.Connect(ctx, as)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []struct {
			intent forge.IntentID
			plan   string
			want   bool
		}{{"bad", bad, false}, {"higher", higher, true}} {
			r, err := b.Submissions.Ask(ctx, forge.Event{
				ID: name + string(one.intent), To: forge.Key{Project: project, Intent: one.intent}, Actor: name, Message: &forge.Approve{Plan: one.plan},
			})
			if err != nil || (r.Decision == forge.Applied) != one.want {
				t.Errorf("%s approves %s: %+v, %v", name, one.intent, r, err)
			}
		}
		b.Close()
	}
	if t.Failed() {
		t.FailNow() // nothing would be merged
	}
}
