package hooks_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// TestEntriesOfHooks: what comes through a hook of systems acts as an entry of
// a system, so that without one the file is refused, by its field.
func TestEntriesOfHooks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte("tokens:\n  ci: {system: ci, projects: {shop: [requester]}}\n"+
		"  ada: {login: ada, person: ada, projects: {shop: [requester]}}\n"+
		"  old: {system: old, projects: {shop: [requester]}, expires: 2020-01-01T00:00:00Z}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	book, err := tokens.Open(path, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"{name: ci, kind: standard, secrets: [/a], entry: ci}":        "",
		"{name: ci, kind: cloudevents, secrets: [/a], entry: ci}":     "",
		"{name: ci, kind: cloudevents, secrets: [/a], entry: old}":    "",
		"{name: ci, kind: standard, secrets: [/a]}":                   "hooks[0].entry: is empty",
		"{name: ci, kind: cloudevents, secrets: [/a]}":                "hooks[0].entry: is empty",
		"{name: ci, kind: github, secrets: [/a], entry: ci}":          "hooks[0].entry: is for the kinds standard and cloudevents",
		"{name: ci, kind: standard, secrets: [/a], entry: nobody}":    `hooks[0].entry: there is no "nobody" in the file of tokens`,
		"{name: ci, kind: standard, secrets: [/a], entry: ada}":       "hooks[0].entry: ada is that of a person",
		"{name: submitted, kind: standard, secrets: [/a], entry: ci}": `hooks[0].name: "submitted" is a name of our own`,
	} {
		list, err := hooks.Parse("hooks.yaml", []byte("hooks: ["+text+"]"))
		if err == nil {
			err = hooks.CheckEntries(list, book)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestEventsAreNamed: a CloudEvent is stored under its id and its source, in both of its forms,
// or under a digest where these cannot stand in a header; two events never have one name.
func TestEventsAreNamed(t *testing.T) {
	var s stored
	mux := door(t, &s, newSecret)
	seen := map[string]string{}
	for _, one := range []struct{ id, source, wantID, wantSource string }{
		{"finding-7", "scanner", "finding-7", "scanner"},
		{"a b", "https://ci.example.com/x", "a b", "https://ci.example.com/x"},
		{"a", "b c", "", ""},
		{"a b", "c", "a b", "c"},
		{"é", "scanner", "", ""},
		{"x\r\ny", "scanner", "", ""},
		{strings.Repeat("x", 300), "scanner", "", ""},
		{" a", "scanner", "", ""},
	} {
		s.list = nil
		body := jsonOf(map[string]any{"specversion": "1.0", "type": "t", "source": one.source, "id": one.id})
		if got := post(mux, "/hooks/cloudevents", body, signed(hooks.CloudEvents, newSecret, body, now)); got != http.StatusAccepted || len(s.list) != 1 {
			t.Fatalf("%q is answered with %d, and stored as %+v", one.id, got, s.list)
		}
		name := s.list[0].ID
		id, source := hooks.EventNamed(name)
		if one.wantID != "" && (id != one.wantID || source != one.wantSource) || one.wantID == "" && (source != "" || len(id) != 32) {
			t.Errorf("%q of %q is named %q: %q of %q", one.id, one.source, name, id, source)
		}
		if seen[name] != "" {
			t.Errorf("%q of %q has the name of %s", one.id, one.source, seen[name])
		}
		seen[name] = one.id + " of " + one.source
	}
}

// jsonOf returns a value as JSON.
func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
