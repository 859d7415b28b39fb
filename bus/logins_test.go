package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/callout"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// logins is a guarded server that lets in by tokens everybody who is not a system or follower.
type logins struct {
	t      *testing.T
	s      *server.Server
	issuer *issuertest.Issuer
	// path is that of the file of identities, and nkey that of the seed of the account auth.
	path, nkey string
	book       *identity.Book
	accounts   []access.Account
	lifetime   time.Duration
	// ahead is how far the clock of the auth service is ahead.
	ahead atomic.Int64
}

// newLogins starts the server; no replica of the auth service runs yet.
func newLogins(t *testing.T) *logins {
	t.Helper()
	l := &logins{t: t, issuer: issuertest.Start(t), lifetime: 10 * time.Minute}
	var text strings.Builder
	fmt.Fprintf(&text, "issuers:\n  - url: %s\n    audience: pfl-forge\n    people:\n", l.issuer.URL)
	text.WriteString("      - {is: ada, account: ada, projects: [shop]}\n      - {is: bob, account: bob, projects: [bank], no_clean: true}\n")
	text.WriteString("      - {is: scan, account: scanner}\n    services:\n")
	for _, role := range access.Services() {
		fmt.Fprintf(&text, "      - {is: 'system:serviceaccount:pfl-forge:%s', account: %s}\n", role, role)
	}
	l.path, l.nkey = filepath.Join(t.TempDir(), "identities.yaml"), filepath.Join(t.TempDir(), "auth.nk")
	l.write(text.String())
	public, seed, err := access.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.nkey, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	issuer, err := access.Issuer(seed)
	if err != nil {
		t.Fatal(err)
	}
	signs, err := issuer.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	auth, err := access.NewAccount(access.Auth, "")
	if err != nil {
		t.Fatal(err)
	}
	users := []access.User{{Account: auth, Proof: access.NKey(public), Issuer: signs}}
	for _, a := range guardedAccounts(t) {
		switch a.Role {
		case access.Operator:
			continue // they log in
		case access.Submitter, access.Follower:
			users = append(users, access.User{Account: a, Proof: fmt.Sprintf("user: %s, password: %s", a.Name, strings.ToUpper(a.Name))})
		default:
		}
		l.accounts = append(l.accounts, a)
	}
	conf := access.Conf(users, l.accounts)
	conf = strings.Replace(conf, "users: [", "users: [ { user: admin, password: ADMIN }", 1)
	conf = strings.Replace(conf, "auth_users: [", "auth_users: [ admin", 1)
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opts.Host, opts.Port, opts.JetStream, opts.StoreDir, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, t.TempDir(), true, true
	l.s = start(t, opts)
	if l.book, err = identity.Open(l.path, slog.New(slog.DiscardHandler), l.now); err != nil {
		t.Fatal(err)
	}
	return l
}

// now is the clock of the auth service.
func (l *logins) now() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }

// write replaces the file of identities.
func (l *logins) write(text string) {
	l.t.Helper()
	if err := os.WriteFile(l.path+".new", []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Rename(l.path+".new", l.path); err != nil {
		l.t.Fatal(err)
	}
}

// serve runs a replica of the auth service, until it is stopped or the test ends.
func (l *logins) serve() (stop func()) {
	l.t.Helper()
	seed, err := bus.ReadSeed(l.nkey)
	if err != nil {
		l.t.Fatal(err)
	}
	ending, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		err := bus.ServeLogins(ending, bus.Config{URL: l.s.ClientURL(), NKey: l.nkey, Name: "auth"}, callout.Config{
			Seed: seed, Book: l.book, Accounts: func() ([]access.Account, error) { return l.accounts, nil },
			Lifetime: l.lifetime, Now: l.now, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
		})
		if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			l.t.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	l.t.Cleanup(stop)
	wait.For(l.t, ready)
	return stop
}

// login logs a person in by a token of the issuer.
func (l *logins) login(sub string) (bus.Login, error) {
	l.t.Helper()
	in := bus.Login(filepath.Join(l.t.TempDir(), "login"))
	_, err := in.Begin(wait.Context(l.t), bus.Config{URL: l.s.ClientURL()}, func(key string) (string, error) {
		return l.issuer.Sign(map[string]any{"sub": sub, "nonce": identity.Nonce(key)}), nil
	})
	return in, err
}

// as is a connection of an account, as the function of that name has it: a
// person's by a login, a service's by a token.
func (l *logins) as(account string) (nc *nats.Conn, refused chan error) {
	l.t.Helper()
	var opts []nats.Option
	role := access.Role(account)
	switch {
	case account == "ada" || account == "bob":
		in, err := l.login(account)
		if err != nil {
			l.t.Fatal(err)
		}
		opts = l.options(in)
	case role != access.Submitter && isService(role):
		token := l.issuer.Sign(map[string]any{"sub": "system:serviceaccount:pfl-forge:" + account})
		opts = []nats.Option{nats.Token(token), nats.CustomInboxPrefix(access.Inbox(account))}
	default:
		return as(l.t, l.s, account)
	}
	refused = make(chan error, 100)
	nc, err := nats.Connect(l.s.ClientURL(), append(opts, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(nc.Close)
	return nc, refused
}

// isService reports whether a role is that of a service.
func isService(role access.Role) bool {
	return slices.Contains(access.Services(), role)
}

// options are those of a connection by a login.
func (l *logins) options(in bus.Login) []nats.Option {
	l.t.Helper()
	c, err := in.Certificate()
	if err != nil {
		l.t.Fatal(err)
	}
	key, err := nats.NkeyOptionFromSeed(filepath.Join(string(in), "nkey"))
	if err != nil {
		l.t.Fatal(err)
	}
	return []nats.Option{key, nats.Token(c.String()), nats.CustomInboxPrefix(access.LoginInbox(c.Account)), nats.Timeout(wait.Patience)}
}

// TestWhoMayWhatByTokens is TestWhoMayWhat for accounts that come by tokens:
// they may the same, but that the inbox of a person is among those of logins.
func TestWhoMayWhatByTokens(t *testing.T) {
	t.Parallel()
	l := newLogins(t)
	l.serve()
	more := map[string]string{
		"_INBOX_login.ada.x": "runner implementer", "_INBOX_login.bob.x": "runner implementer", "_INBOX_auth.x": nobody,
		"forge.auth.UABC.certify": nobody, "$SYS.REQ.USER.AUTH": nobody, "$SYS._INBOX.x.y": nobody,
	}
	hear := map[string]string{
		"_INBOX_login.ada.>": "ada", "_INBOX_login.bob.>": nobody, "_INBOX_login.>": nobody, "_INBOX_login.*.>": nobody, "_INBOX_ada.>": nobody,
		"$SYS.REQ.USER.AUTH": nobody, "forge.auth.*.certify": nobody, "$SYS._INBOX.>": nobody,
	}
	for subject, who := range mayPublish {
		if subject != "_INBOX_ada.x" { // nobody's here
			more[subject] = who
		}
	}
	for subject, who := range mayListen {
		if _, ok := hear[subject]; !ok {
			hear[subject] = who
		}
	}
	for account := range strings.FieldsSeq(everyService + " ada") {
		nc, refused := l.as(account)
		tryAll(t, account, nc, refused, more, hear)
	}
}

// TestEveryTrickByTokens is TestEveryTrick for accounts that come by tokens.
func TestEveryTrickByTokens(t *testing.T) {
	t.Parallel()
	l := newLogins(t)
	l.serve()
	var people []access.Account
	for _, a := range guardedAccounts(t) {
		if a.Role == access.Operator {
			a.Login = true
			people = append(people, a)
		}
	}
	tryTricks(t, l.s, people, append(l.accounts, people...), l.as)
	var services []access.Account
	for _, a := range l.accounts {
		if isService(a.Role) {
			services = append(services, a)
		}
	}
	tryTricks(t, l.s, services, l.accounts, l.as)
}
