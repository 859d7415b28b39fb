package login_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/overhttp/login"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestLoginIsOfOneServer: a login names its gateway, and is none at another
// one, wherever its file was copied or linked to; nor is what is no file.
func TestLoginIsOfOneServer(t *testing.T) {
	i := issuertest.Start(t)
	f, _ := begun(t, i)
	path := filepath.Join(f.Path, "login.json")
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `"server":"https://forge.example.com"`) {
		t.Errorf("%s, %v", text, err)
	}
	other := login.Folder{Path: f.Path, Server: "https://forge.example.net"}
	for about, err := range map[string]error{"read": second(other.Read()), "used": second(other.Token(wait.Context(t), ""))} {
		if err == nil || !strings.Contains(err.Error(), `is a login at "https://forge.example.com", and not at https://forge.example.net`) {
			t.Errorf("%s for another gateway: %v", about, err)
		}
	}
	if i.Asked(issuertest.Token) > 0 {
		t.Error("it was refreshed for another gateway")
	}
	linked := login.Folder{Path: t.TempDir(), Server: f.Server}
	name := filepath.Join(linked.Path, "login.json")
	if err := os.Symlink(path, name); err != nil {
		t.Fatal(err)
	}
	if _, err := linked.Read(); err == nil || errors.Is(err, login.ErrNone) {
		t.Errorf("a link: %v", err)
	}
	if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := linked.Read(); err == nil || !strings.Contains(err.Error(), "is no file of a login") {
		t.Errorf("a pipe: %v", err)
	}
	if err := errors.Join(os.Remove(name), os.WriteFile(name, make([]byte, 200<<10), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := linked.Read(); err == nil || !strings.Contains(err.Error(), "is no file of a login") {
		t.Errorf("a large file: %v", err)
	}
}

// second returns the error of two results.
func second[T any](_ T, err error) error { return err }

// TestTokenOfTheLogin: what an issuer gives has to be of itself, for the
// command line and of the person who logged in, at the first time and after
// each refreshing. A token that was given as it is counts until it says itself.
func TestTokenOfTheLogin(t *testing.T) {
	i, other := issuertest.Start(t), issuertest.Start(t)
	now := time.Unix(1_700_000_000, 0)
	grant := func(from *issuertest.Issuer, name string, value any) identity.Grant {
		return identity.Grant{Token: from.Sign(map[string]any{"sub": "17", name: value})}
	}
	for name, c := range map[string]struct {
		at    login.At
		grant identity.Grant
		says  string
	}{
		"of another issuer":               {at(i), grant(other, "sub", "17"), "the token is of the issuer"},
		"for another program":             {at(i), grant(i, "aud", "wiki"), `the token is for "wiki", and not for pfl-forge`},
		"for no program":                  {at(i), grant(i, "aud", nil), "and not for pfl-forge"},
		"for something that is no name":   {at(i), grant(i, "aud", 7), "cannot be read"},
		"of nobody":                       {at(i), grant(i, "sub", ""), "of no person"},
		"of a long name":                  {at(i), grant(i, "sub", strings.Repeat("a", 256)), "at most 255"},
		"given, for another program":      {login.At{Client: "pfl-forge"}, grant(i, "aud", "wiki"), "and not for pfl-forge"},
		"given, and expired":              {login.At{}, grant(i, "exp", now.Unix()-1), "has expired"},
		"given, without an end":           {login.At{}, grant(i, "exp", nil), "has expired"},
		"given, with an end out of range": {login.At{}, grant(i, "exp", -1e300), "has expired"},
	} {
		if l, err := login.New(c.at, c.grant, now); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
	for name, c := range map[string]struct {
		at       login.At
		iat, exp int64
		lasts    time.Duration
	}{
		"given, half an hour old":       {login.At{}, now.Unix() - 1800, now.Unix() + 1800, 30 * time.Minute},
		"given, for years":              {login.At{}, now.Unix(), 1 << 60, 24 * time.Hour},
		"of a login, by another clock":  {at(i), now.Unix() + 9000, now.Unix() + 12600, time.Hour},
		"of a login, by a former clock": {at(i), 1000, 1030, 30 * time.Second},
		"of a login, for two programs":  {at(i), now.Unix(), now.Unix() + 60, time.Minute},
	} {
		g := identity.Grant{Token: i.Sign(map[string]any{"sub": "17", "aud": []string{"wiki", "pfl-forge"}, "iat": c.iat, "exp": c.exp})}
		if l, err := login.New(c.at, g, now); err != nil || !l.Until.Equal(now.Add(c.lasts)) || l.Issuer != i.URL || l.Subject != "17" {
			t.Errorf("%s: until %s, %v", name, l.Until, err)
		}
	}
	for name, claims := range map[string]map[string]any{
		"another person":  {"sub": "18"},
		"another issuer":  {"sub": "17", "iss": other.URL},
		"another program": {"sub": "17", "aud": "wiki"},
	} {
		f, l := begun(t, i)
		l.Until = time.Unix(0, 0)
		if err := f.Write(wait.Context(t), l); err != nil {
			t.Fatal(err)
		}
		i.Person = claims
		if token, err := f.Token(wait.Context(t), ""); !errors.Is(err, identity.ErrGrant) || token != "" {
			t.Errorf("refreshed as %s: %q, %v", name, token, err)
		}
	}
}

// TestRefreshOutlivesItsCommand: a command that is ended while the issuer answers keeps what it
// answers: what was sent for it counts once. Others that wait are told that they may ask again.
func TestRefreshOutlivesItsCommand(t *testing.T) {
	i := issuertest.Start(t)
	i.Person = map[string]any{"sub": "17"}
	f, first := begun(t, i)
	release := i.Hold()
	ctx, end := context.WithCancel(wait.Context(t))
	ended := make(chan error, 1)
	go func() { ended <- second(f.Token(ctx, "")) }()
	wait.Until(t, "the issuer is asked", func() bool { return i.Asked(issuertest.About) > 0 })
	over, cancel := context.WithCancel(wait.Context(t))
	cancel()
	if _, err := f.Token(over, ""); !errors.Is(err, identity.ErrAway) || errors.Is(err, git.ErrBusy) {
		t.Errorf("who waits for another command: %v", err)
	}
	end()
	release()
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
	if l, err := f.Read(); err != nil || l.Token == first.Token || l.Refresh == first.Refresh || l.Server != f.Server {
		t.Errorf("kept is %+v, %v", l, err)
	}
}

// FuzzNew: whatever an issuer says in a token, the login of it can be kept,
// counts for a day at most, and its names steer no terminal.
func FuzzNew(f *testing.F) {
	f.Add([]byte(`{"iss": "https://issuer", "aud": ["pfl-forge"], "sub": "17", "iat": 1e300, "exp": -1e300}`))
	f.Add([]byte(`{"iss": "https://issuer", "aud": "pfl-forge", "sub": "\u001b[2J17", "preferred_username": "\u202e", "exp": 1e19}`))
	now := time.Unix(1_700_000_000, 0)
	f.Fuzz(func(t *testing.T, payload []byte) {
		token := "e30." + base64.RawURLEncoding.EncodeToString(payload) + ".e30"
		for _, at := range []login.At{{}, {Issuer: "https://issuer", Client: "pfl-forge"}} {
			l, err := login.New(at, identity.Grant{Token: token}, now)
			if err != nil {
				continue
			}
			if l.Until.Before(now) || l.Until.Sub(now) > identity.MaxAge || term.Line(l.Name) != l.Name || len(l.Subject) > identity.MaxName {
				t.Errorf("%+v", l)
			}
			if _, err := json.Marshal(l); err != nil {
				t.Error(err)
			}
			if at.Issuer != "" && l.Issuer != at.Issuer {
				t.Errorf("a login at %s", l.Issuer)
			}
		}
	})
}
