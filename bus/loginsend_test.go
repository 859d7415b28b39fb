package bus_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/callout"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/proof"
)

// TestNotLetIn checks that nobody comes in who should not, and that accounts
// with keys of the server's configuration are not asked about.
func TestNotLetIn(t *testing.T) {
	t.Parallel()
	l := newLogins(t)
	in := func(opts ...nats.Option) error {
		nc, err := nats.Connect(l.s.ClientURL(), append(opts, nats.Timeout(wait.Patience))...)
		if err == nil {
			nc.Close()
		}
		return err
	}
	if err := in(nats.UserInfo("scanner", "SCANNER")); err != nil {
		t.Errorf("without an auth service, an account of the server's: %v", err)
	}
	l.serve()
	l.serve()
	ada, err := l.login("ada")
	if err != nil {
		t.Fatal(err)
	}
	good := l.options(ada)
	if err := in(good...); err != nil {
		t.Error(err)
	}
	c, err := ada.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	bob, err := l.login("bob")
	if err != nil {
		t.Fatal(err)
	}
	bobs := l.options(bob)[0]
	later := c
	later.Until = later.Until.Add(time.Hour)
	runner := c
	runner.Account = "runner"
	own, err := proof.Certify(keyOf(t, "auth"), c)
	if err != nil {
		t.Fatal(err)
	}
	bound := l.issuer.Sign(map[string]any{"nonce": identity.Nonce(c.Connection)})
	for name, opts := range map[string][]nats.Option{
		"nothing":                      nil,
		"a wrong password":             {nats.UserInfo("scanner", "x")},
		"a wrong password of auth":     {nats.UserInfo("auth", "x")},
		"a certificate without a key":  {nats.Token(c.String())},
		"a certificate, another's key": {nats.Token(c.String()), bobs},
		"a longer certificate":         {nats.Token(later.String()), good[0]},
		"a certificate of a runner":    {nats.Token(runner.String()), good[0]},
		"a certificate of their own":   {nats.Token(own.String()), good[0]},
		"half a certificate":           {nats.Token(c.String()[:100]), good[0]},
		"a key alone":                  {good[0]},
		"a token without a key":        {nats.Token(l.issuer.Sign(nil))},
		"a token, another's key":       {nats.Token(bound), bobs},
		"a token as password":          {nats.UserInfo("ada", l.issuer.Sign(nil))},
		"an unsigned token":            {nats.Token(l.issuer.Forge(map[string]any{"alg": "none"}, nil)), good[0]},
		"a stranger":                   {nats.Token(l.issuer.Sign(map[string]any{"sub": "eve"})), good[0]},
		"the name of a system":         {nats.Token(l.issuer.Sign(map[string]any{"sub": "scan"})), good[0]},
		"a huge token":                 {nats.Token(strings.Repeat("x", 15<<10)), good[0]},
	} {
		if err := in(opts...); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A token of a person makes no more than a request to certify.
	nc, err := nats.Connect(l.s.ClientURL(), nats.Token(bound), good[0], nats.CustomInboxPrefix(access.LoginInbox(c.Connection)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for _, subject := range []string{"forge.intent.shop.by.ada.approve", "forge.api.shop.by.ada.read", "forge.auth.UOTHER.certify", "$JS.API.INFO"} {
		other, refused := l.asToken(bound, good[0])
		deniedPublish(wait.Context(t), t, other, refused, subject)
	}
	if _, err := callout.Certify(wait.Context(t), nc, l.issuer.Sign(map[string]any{"sub": "bob", "nonce": "x"}), c.Connection, keyOf(t, "x")); err == nil {
		t.Error("a connection by ada's token has a token of bob's certified that is bound to another key")
	}
}

// asToken is a connection by a token that is to be certified.
func (l *logins) asToken(token string, key nats.Option) (*nats.Conn, chan error) {
	l.t.Helper()
	refused := make(chan error, 100)
	nc, err := nats.Connect(l.s.ClientURL(), nats.Token(token), key, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(nc.Close)
	return nc, refused
}

// TestServiceTokensEnd: a service that comes by the token of its pod is connected for no longer
// than that token is good, however long connections and logins last, and goes on with the next one.
func TestServiceTokensEnd(t *testing.T) {
	t.Parallel()
	l := newLogins(t)
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	l.write("session: 24h\n" + string(text))
	l.serve()
	short := func(lasts time.Duration) string {
		return l.issuer.Sign(map[string]any{"sub": "system:serviceaccount:pfl-forge:reviewer", "exp": time.Now().Add(lasts).Unix()})
	}
	var token atomic.Value
	token.Store(short(3 * time.Second))
	ended, again := make(chan struct{}, 100), make(chan struct{}, 100)
	nc, err := nats.Connect(l.s.ClientURL(), nats.TokenHandler(func() string { return token.Load().(string) }),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { ended <- struct{}{} }),
		nats.ReconnectHandler(func(*nats.Conn) { again <- struct{}{} }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	stolen := token.Load().(string)
	wait.For(t, ended)
	if other, err := nats.Connect(l.s.ClientURL(), nats.Token(stolen)); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("let in by a token that has ended: %v", err)
		other.Close()
	}
	if nc.IsConnected() {
		t.Error("connected by a token that has ended")
	}
	token.Store(short(time.Hour)) // as Kubernetes replaces it
	wait.For(t, again)
}

// TestLoginsEnd checks that connections end by themselves, go on where the
// login does, and not where the person was removed or the login has ended; and
// that they survive an auth service that is away for a while.
func TestLoginsEnd(t *testing.T) {
	t.Parallel()
	l := newLogins(t)
	l.lifetime = 2 * time.Second
	stop := l.serve()
	ada, err := l.login("ada")
	if err != nil {
		t.Fatal(err)
	}
	ended, again := make(chan struct{}, 100), make(chan struct{}, 100)
	nc, err := nats.Connect(l.s.ClientURL(), append(l.options(ada), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { ended <- struct{}{} }),
		nats.ReconnectHandler(func(*nats.Conn) { again <- struct{}{} }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	wait.For(t, ended) // by itself
	wait.For(t, again)
	stop()
	wait.For(t, ended)
	if nc.IsConnected() {
		t.Error("connected without an auth service")
	}
	l.serve() // restarted
	wait.For(t, again)
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	l.write(string(text) + "removed: [ada]\n")
	for len(ended) > 0 {
		<-ended
	}
	wait.For(t, ended)
	out := func(why string) {
		t.Helper()
		if other, err := nats.Connect(l.s.ClientURL(), l.options(ada)...); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", why, err)
			other.Close()
		}
	}
	out("removed")
	if _, err := l.login("ada"); err == nil {
		t.Error("a person who was removed logs in")
	}
	l.write(string(text))
	wait.For(t, again)
	l.ahead.Store(int64(9 * time.Hour)) // the login is good for 8
	out("the login has ended")
}

// TestLoginsOutliveTheirToken: a login lasts its own time, and not that of the token that it
// came from. That the token has expired, or is stolen after that, changes nothing for either.
func TestLoginsOutliveTheirToken(t *testing.T) {
	t.Parallel()
	l := newLogins(t)
	l.serve()
	var token string
	in := bus.Login(filepath.Join(t.TempDir(), "login"))
	if _, err := in.Begin(wait.Context(t), bus.Config{URL: l.s.ClientURL()}, func(key string) (string, error) {
		token = l.issuer.Sign(map[string]any{"sub": "ada", "nonce": identity.Nonce(key), "exp": time.Now().Add(time.Minute).Unix()})
		return token, nil
	}); err != nil {
		t.Fatal(err)
	}
	byLogin := l.options(in)
	byToken := []nats.Option{byLogin[0], nats.Token(token), nats.Timeout(wait.Patience)}
	for _, tt := range []struct {
		ahead        time.Duration
		login, token error
	}{
		{0, nil, nil},
		{time.Hour, nil, nats.ErrAuthorization},
		{7 * time.Hour, nil, nats.ErrAuthorization},
		{9 * time.Hour, nats.ErrAuthorization, nats.ErrAuthorization}, // the login is good for 8
	} {
		l.ahead.Store(int64(tt.ahead))
		for name, one := range map[string]struct {
			opts []nats.Option
			want error
		}{"login": {byLogin, tt.login}, "token": {byToken, tt.token}} {
			nc, err := nats.Connect(l.s.ClientURL(), one.opts...)
			if !errors.Is(err, one.want) {
				t.Errorf("after %s, by the %s: %v, want %v", tt.ahead, name, err, one.want)
			}
			nc.Close()
		}
	}
}
