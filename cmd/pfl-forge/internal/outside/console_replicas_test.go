package outside

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auth"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// issued returns the key of the console that auth init --kubernetes makes, as a Secret has it.
func issued(t *testing.T) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := auth.Command(&kit.App{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	cmd.SetArgs([]string{"init", "--kubernetes", "--gateway"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(out.String(), "console.key: ")
	text, _, _ := strings.Cut(rest, "\n")
	key, err := base64.StdEncoding.DecodeString(strings.Trim(text, `"'`))
	if err != nil || len(key) == 0 {
		t.Fatal(err, "there is no key")
	}
	return key
}

// TestConsoleReplicas has two gateways read the key of one Secret, as the manifests mount it: a session of one holds at the other, and after each of
// them was replaced. With another key it ends, and says so.
func TestConsoleReplicas(t *testing.T) {
	mount := func(key []byte) gateway.Settings {
		path := filepath.Join(t.TempDir(), "console.key")
		if err := os.WriteFile(path, key, 0o440); err != nil { // as the manifests mount it
			t.Fatal(err)
		}
		return gateway.Settings{Listen: "127.0.0.1:0", Console: gateway.Console{Key: path, Projects: []string{"shop"}}}
	}
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	replica := func(s gateway.Settings) (stop func(), base string) {
		s.Tokens = w.file
		return w.gateway(s)
	}
	key := issued(t)
	stopOne, one := replica(mount(key))
	stopTwo, two := replica(mount(key))
	w.base = one
	ada := w.signIn("ada")
	at := func(base string) page {
		w.base = base
		return ada.get("/console/board")
	}
	for n, base := range []string{two, one, two} {
		if p := at(base); p.status != http.StatusOK {
			t.Fatalf("request %d: %d", n, p.status)
		}
	}
	stopOne()
	at(two).wants(t, "while one is away", http.StatusOK, "ada")
	stopThree, three := replica(mount(key))
	stopTwo()
	at(three).wants(t, "at one that is new", http.StatusOK, "ada")
	stopThree()
	_, four := replica(mount(issued(t)))
	at(four).wants(t, "with another key", http.StatusUnauthorized, "the key of the console was replaced")
}
