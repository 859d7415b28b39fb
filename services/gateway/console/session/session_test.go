package session

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// book returns a file of tokens with one entry.
func book(t *testing.T, rest string) (*tokens.Book, string) {
	t.Helper()
	secret, sum := tokens.Make()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte("tokens:\n  ada: {sha256: "+sum+", "+rest+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := tokens.Open(path, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return b, secret
}

// TestSessionsEnd: a session lasts its time, under its key, for the token that was shown.
func TestSessionsEnd(t *testing.T) {
	b, secret := book(t, "person: ada, projects: {shop: [viewer]}")
	other, _ := book(t, "person: ada, projects: {shop: [viewer]}")
	system, systems := book(t, "system: ada, projects: {shop: [viewer]}")
	ada, err := b.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	ci, err := system.Find(systems)
	if err != nil {
		t.Fatal(err)
	}
	made := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) func() time.Time { return func() time.Time { return made.Add(d) } }
	key := []byte(strings.Repeat("k", KeyBytes))
	s := New(key, b, "", at(0))
	sealed := s.Seal(ByToken, ada)
	for name, one := range map[string]struct {
		s    *Sessions
		text string
		want error
	}{
		"at once":         {s, sealed, nil},
		"at its end":      {New(key, b, "", at(Time-time.Second)), sealed, nil},
		"after its end":   {New(key, b, "", at(Time)), sealed, ErrOver},
		"from the future": {New(key, b, "", at(-time.Hour)), sealed, ErrOver},
		"another key":     {New([]byte(strings.Repeat("l", KeyBytes)), b, "", at(0)), sealed, ErrForeign},
		"another token":   {New(key, other, "", at(0)), sealed, ErrRemoved},
		"a system":        {New(key, system, "", at(0)), New(key, system, "", at(0)).Seal(ByToken, ci), ErrRemoved},
		"longer":          {s, sealed + "x", ErrForeign},
		"none":            {s, "", ErrForeign},
		"a later one":     {s, strings.Replace(sealed, ".ada.", ".ada.z", 1), ErrForeign},
	} {
		if _, err := one.s.Open(one.text); err != one.want { //nolint:errorlint // exactly this one
			t.Errorf("%s: %v, want %v", name, err, one.want)
		}
	}
	sum := ada.Sum()
	if strings.Contains(sealed, secret) || strings.Contains(sealed, fmt.Sprintf("%x", sum)) {
		t.Error("the cookie has the token, or its hash")
	}
}

// TestKeyAndFileMakeSessions: whoever has the key of sessions and the file of
// tokens, which has no token but hashes, makes a session of each person in it, and
// the console takes it. The guide says so. With one of the two alone nobody does.
func TestKeyAndFileMakeSessions(t *testing.T) {
	b, secret := book(t, "person: ada, projects: {shop: [viewer]}")
	at := func() time.Time { return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) }
	keyPath := filepath.Join(t.TempDir(), "console.key")
	key, err := LoadKey(keyPath)
	if err != nil {
		t.Fatal(err)
	}
	console := New(key, b, "", at)
	// What a thief has are copies of the two files.
	ada, err := b.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.yaml")
	text := fmt.Sprintf("tokens:\n  ada: {sha256: %s, person: ada, projects: {shop: [viewer]}}\n", ada.SHA256)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	copied, err := tokens.Open(path, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := copied.Named("ada")
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := LoadKey(keyPath)
	if err != nil {
		t.Fatal(err)
	}
	guess, err := LoadKey(filepath.Join(t.TempDir(), "another.key"))
	if err != nil {
		t.Fatal(err)
	}
	made, _ := book(t, "person: ada, projects: {shop: [viewer]}")
	other, err := made.Named("ada")
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		sealed string
		want   error
	}{
		"both":     {New(stolen, copied, "", at).Seal(ByToken, entry), nil},
		"the file": {New(guess, copied, "", at).Seal(ByToken, entry), ErrForeign},
		"the key":  {New(stolen, made, "", at).Seal(ByToken, other), ErrRemoved},
	} {
		who, err := console.Open(one.sealed)
		if err != one.want { //nolint:errorlint // exactly this one
			t.Errorf("with %s: %v, want %v", name, err, one.want)
		}
		if one.want == nil && (who == nil || who.Name != "ada") {
			t.Errorf("with %s it is a session of %+v", name, who)
		}
	}
}

// TestLoadKey makes a key once, and refuses one that others can read or that is none.
func TestLoadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console.key")
	first, err := LoadKey(path)
	if err != nil || len(first) != KeyBytes {
		t.Fatal(first, err)
	}
	if again, err := LoadKey(path); err != nil || string(again) != string(first) {
		t.Errorf("the second time it is %x, %v", again, err)
	}
	if left, err := filepath.Glob(filepath.Dir(path) + "/.*"); err != nil || len(left) > 0 {
		t.Errorf("left is %v, %v", left, err)
	}
	for mode, want := range map[os.FileMode]string{0o604: "chmod 600", 0o620: "chmod 600", 0o640: ""} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKey(path); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "short", strings.Repeat("zz", KeyBytes), strings.Repeat("00", KeyBytes+1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKey(path); err == nil || !strings.Contains(err.Error(), "openssl rand -hex 32") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := LoadKey(filepath.Join(path, "below", "a", "file")); err == nil {
		t.Error("a key in no folder is made")
	}
}

// TestSessionsOfLogins: a session by login counts for that login at that
// issuer, and no session of a token is one of a login.
func TestSessionsOfLogins(t *testing.T) {
	at := func() time.Time { return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) }
	key := []byte(strings.Repeat("k", KeyBytes))
	both, secret := book(t, "login: ada-1, person: ada, projects: {shop: [viewer]}")
	moved, _ := book(t, "login: ada-2, person: ada, projects: {shop: [viewer]}")
	token, _ := book(t, "person: ada, projects: {shop: [viewer]}")
	ada, err := both.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	s := New(key, both, "one", at)
	sealed := s.Seal(ByLogin, ada)
	for name, one := range map[string]struct {
		s    *Sessions
		text string
		want error
	}{
		"the login":                {s, sealed, nil},
		"the token":                {s, s.Seal(ByToken, ada), nil},
		"another login":            {New(key, moved, "one", at), sealed, ErrRemoved},
		"a token in its place":     {New(key, token, "one", at), sealed, ErrRemoved},
		"another issuer":           {New(key, both, "two", at), sealed, ErrRemoved},
		"no issuer":                {New(key, both, "", at), sealed, ErrRemoved},
		"a session without issuer": {New(key, both, "", at), New(key, both, "", at).Seal(ByLogin, ada), ErrRemoved},
		"another way":              {s, s.Seal("3", ada), ErrRemoved},
	} {
		if _, err := one.s.Open(one.text); err != one.want { //nolint:errorlint // exactly this one
			t.Errorf("%s: %v, want %v", name, err, one.want)
		}
	}
}
