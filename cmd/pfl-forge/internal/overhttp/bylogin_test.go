package overhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/overhttp/login"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// byLogin returns a client like that of client, of who has logged in.
func byLogin(t *testing.T, server string, token func(context.Context, string) (string, error)) *Client {
	t.Helper()
	c := client(t, server)
	c.token, c.bounds.silence = token, time.Minute
	return c
}

// loginAt returns a login whose token is about to expire, or has expired.
func loginAt(t *testing.T, i *issuertest.Issuer, server string, left time.Duration) login.Folder {
	t.Helper()
	f := login.Folder{Path: filepath.Join(t.TempDir(), "login"), Server: server}
	l, err := login.New(login.At{Issuer: i.URL, Client: "pfl-forge"},
		identity.Grant{Token: i.Sign(map[string]any{"sub": "17", "jti": "the first"}), Refresh: i.Refreshable("pfl-forge")}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l.Until = time.Now().Add(left)
	if err := f.Write(wait.Context(t), l); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestWatchOutlivesItsIssuer: while an issuer does not answer a watch by a
// login waits, as it does for its gateway, and then goes on; so does the stream
// of changes by itself. At the start who watches is told, after a while.
func TestWatchOutlivesItsIssuer(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t) // eight pauses before a request is sent again
	i := issuertest.Start(t)
	i.Person = map[string]any{"sub": "17"}
	p := &project{told: make(chan string), large: true}
	server := serve(t, p.ServeHTTP)
	f := loginAt(t, i, server, -time.Minute)
	waiting := make(chan struct{}, 100)
	c := byLogin(t, server, func(ctx context.Context, refused string) (string, error) {
		token, err := f.Token(ctx, refused)
		if errors.Is(err, identity.ErrAway) {
			select {
			case waiting <- struct{}{}:
			default:
			}
		}
		return token, err
	})
	w := &watcher{}
	i.Away(true)
	err := c.Watch(wait.Context(t), w, "", true)
	if wants(t, "at the start", err, "cannot be asked now"); !errors.Is(err, identity.ErrAway) {
		t.Errorf("%v is another error", err)
	}
	i.Away(false)
	ended := make(chan error, 1)
	go func() { ended <- c.Watch(wait.Context(t), w, "", true) }()
	p.watched(t, w)
	expire(t, f)
	i.Away(true)
	for range len(waiting) {
		<-waiting
	}
	p.told <- p.decide() // which ends the stream, and has the state read
	for range 8 {        // more often than one request is sent again
		wait.For(t, waiting)
	}
	p.decide()
	p.decide() // the last one, after which the watch ends
	i.Away(false)
	if err := wait.For(t, ended); err != nil || w.last != "step 3" {
		t.Errorf("%v, the last state is %q", err, w.last)
	}
}

// watched waits until a watch has told the first state, and hears of changes.
func (p *project) watched(t *testing.T, w *watcher) {
	t.Helper()
	wait.Until(t, "the first state is told", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.state == 1 })
	wait.Until(t, "the stream has begun", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.last) > 0 })
}

// expire has the token of a login expire.
func expire(t *testing.T, f login.Folder) {
	t.Helper()
	l, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	l.Until = time.Unix(0, 0)
	if err := f.Write(wait.Context(t), l); err != nil {
		t.Fatal(err)
	}
}

// TestLogoutEndsAWatch: a logout ends what watches by the login, and nothing puts the login back.
func TestLogoutEndsAWatch(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	i.Person = map[string]any{"sub": "17"}
	p := &project{told: make(chan string)}
	server := serve(t, p.ServeHTTP)
	f := loginAt(t, i, server, 0)
	c := byLogin(t, server, f.Token)
	w := &watcher{}
	ended := make(chan error, 1)
	go func() { ended <- c.Watch(wait.Context(t), w, "", false) }()
	p.watched(t, w)
	if err := f.End(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	p.told <- p.decide()
	if err := wait.For(t, ended); !errors.Is(err, login.ErrNone) {
		t.Errorf("the watch ends with %v", err)
	}
	if _, err := f.Read(); !errors.Is(err, login.ErrNone) {
		t.Errorf("after the logout there is a login: %v", err)
	}
}

// TestRefusedTokenIsReplaced: the clock of the gateway counts, and not that of this
// machine. A token that it does not take is replaced by the next one, once in each
// request; where there is no next one its holder is told what the gateway says.
func TestRefusedTokenIsReplaced(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	i.Person = map[string]any{"sub": "17"}
	var mu sync.Mutex
	counts, asked := "", 0 // the token that counts
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		good := r.Header.Get("Authorization") == "Bearer "+counts
		mu.Unlock()
		if !good {
			says(401, "application/problem+json", `{"detail": "this token does not count: expired"}`)(w, r)
			return
		}
		says(200, "application/json", `{"intents": []}`)(w, r)
	})
	f := loginAt(t, i, server, time.Hour) // by the clock of this machine
	first, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	c := byLogin(t, server, func(ctx context.Context, refused string) (string, error) {
		token, err := f.Token(ctx, refused)
		if refused != "" && err == nil {
			mu.Lock()
			counts = token
			mu.Unlock()
		}
		return token, err
	})
	if _, err := c.Overview(wait.Context(t)); err != nil {
		t.Errorf("with the next token: %v", err)
	}
	mu.Lock()
	next, n := counts, asked
	mu.Unlock()
	if l, err := f.Read(); err != nil || l.Token == first.Token || l.Token != next || n != 2 || i.Asked(issuertest.Token) != 1 {
		t.Errorf("%v; the gateway was asked %d times, and the issuer %d", err, n, i.Asked(issuertest.Token))
	}
	if _, err := c.Overview(wait.Context(t)); err != nil || i.Asked(issuertest.Token) != 1 {
		t.Errorf("a token that counts was replaced: %v", err)
	}
	// A gateway that takes no token at all has the issuer asked once for each
	// command, and not until it does.
	stubborn := byLogin(t, serve(t, says(401, "application/problem+json", `{"detail": "no token counts"}`)), f.Token)
	_, err = stubborn.Overview(wait.Context(t))
	if wants(t, "no token", err, "no token counts"); i.Asked(issuertest.Token) != 2 {
		t.Errorf("the issuer was asked %d times", i.Asked(issuertest.Token))
	}
	i.Answer(issuertest.Token, says(400, "application/json", `{"error": "invalid_grant"}`))
	_, err = stubborn.Overview(wait.Context(t))
	wants(t, "the login has ended", err, "no token counts")
	i.Away(true)
	i.Answer(issuertest.Token, nil)
	_, err = stubborn.Overview(wait.Context(t))
	if wants(t, "while the issuer is away", err, "has to be refreshed"); !errors.Is(err, identity.ErrAway) {
		t.Errorf("%v is another error", err)
	}
	if _, err = client(t, stubborn.base.String()).Overview(wait.Context(t)); !strings.Contains(fmt.Sprint(err), "no token counts") {
		t.Errorf("a token of the file: %v", err)
	}
}

// TestRedirectTakesNoLogin: nor does a redirect have the token of a login sent
// elsewhere, or the login refreshed.
func TestRedirectTakesNoLogin(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	thief := &heardToken{}
	elsewhere := serve(t, thief.ServeHTTP)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	})
	f := loginAt(t, i, server, time.Hour)
	c := byLogin(t, server, f.Token)
	_, err := c.Overview(wait.Context(t))
	wants(t, "a redirect", err, "the server sends on to "+elsewhere)
	_, err = c.Ask(wait.Context(t), forge.Event{To: forge.Key{Project: "shop", Intent: "a"}, Message: &forge.Cancel{}})
	if wants(t, "a redirect", err, "where nothing was sent"); i.Asked(issuertest.Token) > 0 {
		t.Error("the login was refreshed")
	}
	if n := thief.asked.Load(); n > 0 {
		t.Errorf("the other server was asked %d times", n)
	}
}
