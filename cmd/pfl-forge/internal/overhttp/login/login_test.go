package login_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/overhttp/login"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// brief are the claims of a token that counts for 30 seconds, so that it is
// about to expire whenever it comes.
func brief() map[string]any {
	return map[string]any{"sub": "17", "iat": json.Number("1000"), "exp": json.Number("1030")}
}

// at is where people log in.
func at(i *issuertest.Issuer) login.At { return login.At{Issuer: i.URL, Client: "pfl-forge"} }

// begun returns a folder with a login whose token is about to expire, which the
// issuer refreshes once for each text that it gave.
func begun(t *testing.T, i *issuertest.Issuer) (login.Folder, login.Login) {
	t.Helper()
	f := login.Folder{Path: filepath.Join(t.TempDir(), "login"), Server: "https://forge.example.com"}
	l, err := login.New(at(i), identity.Grant{Token: i.Sign(brief()), Refresh: i.Refreshable("pfl-forge")}, time.Now())
	if err == nil {
		err = f.Write(wait.Context(t), l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f, l
}

// TestRefreshedOnce: commands that find a token about to expire at the same
// moment refresh the login once, and all have the next one.
func TestRefreshedOnce(t *testing.T) {
	i := issuertest.Start(t)
	i.Person = map[string]any{"sub": "17"}
	f, first := begun(t, i)
	const commands = 8
	got := make(chan string, commands)
	for range commands {
		go func() {
			token, err := f.Token(wait.Context(t), "")
			if err != nil {
				token = err.Error()
			}
			got <- token
		}()
	}
	next := wait.For(t, got)
	for range commands - 1 {
		if other := wait.For(t, got); other != next {
			t.Errorf("a command has %s", other)
		}
	}
	if n := i.Asked(issuertest.Token); n != 1 || next == first.Token || strings.Count(next, ".") != 2 {
		t.Errorf("the issuer was asked %d times, and the token is %s", n, next)
	}
	if l, err := f.Read(); err != nil || l.Token != next || l.Refresh == first.Refresh || l.Name != "17" || l.Issuer != i.URL {
		t.Errorf("kept is %+v, %v", l, err)
	}
}

// TestLoginFile: an issuer that is away leaves the token in use until it
// expires; a login that it does not refresh any more has ended; and a file that
// others can read, or that is none, is refused.
func TestLoginFile(t *testing.T) {
	i := issuertest.Start(t)
	f, l := begun(t, i)
	i.Away(true)
	if token, err := f.Token(wait.Context(t), ""); err != nil || token != l.Token {
		t.Errorf("while the issuer is away: %v", err)
	}
	l.Until = time.Unix(0, 0)
	if err := f.Write(wait.Context(t), l); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Token(wait.Context(t), ""); !errors.Is(err, identity.ErrAway) || !strings.Contains(err.Error(), "has to be refreshed") {
		t.Errorf("expired, while the issuer is away: %v", err)
	}
	i.Away(false)
	for _, refresh := range []string{"", "used before"} {
		l.Refresh = refresh
		if err := f.Write(wait.Context(t), l); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Token(wait.Context(t), ""); err == nil || !strings.Contains(err.Error(), "the login of 17 has ended: pfl-forge login begins a new one") {
			t.Errorf("%q: %v", refresh, err)
		}
	}
	path := filepath.Join(f.Path, "login.json")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(); err == nil || !strings.Contains(err.Error(), "can be read by others") {
		t.Errorf("a file that others can read: %v", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(); err == nil || !strings.Contains(err.Error(), "is no file of a login") {
		t.Errorf("half a file: %v", err)
	}
	if err := f.End(wait.Context(t)); err != nil {
		t.Error(err)
	}
	if _, err := f.Token(wait.Context(t), ""); !errors.Is(err, login.ErrNone) {
		t.Errorf("after the end: %v", err)
	}
	for name, token := range map[string]string{
		"empty": "", "no token": "pflt_x", "no claims": "a.b.c", "of no person": i.Sign(map[string]any{"sub": nil}), "two lines": "a.b.c\nX: y",
	} {
		if l, err := login.New(at(i), identity.Grant{Token: token}, time.Now()); err == nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// TestLoginIsChangedByOne: while one process refreshes a login, no other one ends
// it or puts another person's in its place: the first would put back what it had.
func TestLoginIsChangedByOne(t *testing.T) {
	i := issuertest.Start(t)
	f, first := begun(t, i)
	held, err := git.LockFile(wait.Context(t), filepath.Join(f.Path, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(wait.Context(t))
	end()
	other := first
	other.Name = "18"
	for about, err := range map[string]error{"another login": f.Write(over, other), "the end": f.End(over)} {
		if !errors.Is(err, git.ErrBusy) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if l, err := f.Read(); err != nil || l.Name != first.Name {
		t.Errorf("kept is the login of %s, %v", l.Name, err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Write(wait.Context(t), other), f.End(wait.Context(t)), f.End(wait.Context(t))); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(f.Path, "*")); err != nil || len(left) != 1 || filepath.Base(left[0]) != "lock" {
		t.Errorf("left is %v, %v", left, err)
	}
}
