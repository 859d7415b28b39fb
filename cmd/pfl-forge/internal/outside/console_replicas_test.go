package outside

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auth"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/wait"
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

// TestConsoleReplicas has two gateways read the key of one Secret, as the
// manifests mount it: a session of one holds at the other, and after each of
// them was replaced. With another key it ends, and says so.
func TestConsoleReplicas(t *testing.T) {
	t.Parallel()
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

// TestConsoleTwoGateways: two people decide about the same at the same moment, each
// at another gateway with the same key. Exactly one decision counts, and the other
// person is told whose, whether both approve, one approves and the other rejects,
// or both answer. A form that was made at one gateway counts at the other.
func TestConsoleTwoGateways(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	w.analysis = func(c *forge.Command) *forge.Analysis {
		if strings.Contains(c.Intent.Body, "ask") && len(c.Intent.Clarifications) == 0 {
			return &forge.Analysis{Clarifications: []forge.Clarification{{Question: "Which?", SuggestedAnswers: []string{"blue", "red"}}}}
		}
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
	}
	key := filepath.Join(t.TempDir(), "console.key")
	if err := os.WriteFile(key, issued(t), 0o600); err != nil {
		t.Fatal(err)
	}
	var at [2]*world
	for i := range at {
		one := *w
		_, one.base = w.gateway(gateway.Settings{Listen: "127.0.0.1:0", Tokens: w.file, Console: gateway.Console{Key: key, Projects: []string{"shop"}}})
		at[i] = &one
	}
	who := [2]string{"bob", "ada"}
	people := [2]*browser{at[0].signIn(who[0]), at[1].signIn(who[1])}
	for n := range 6 {
		about := []string{"both approve", "one rejects", "both answer"}[n%3]
		path, decisions := "", [2]string{"approve", "approve"}
		switch about {
		case "one rejects":
			decisions[1] = "reject"
			path, _ = at[0].proposed(fmt.Sprint("two-gateways-", n))
		case "both answer":
			decisions = [2]string{"answer", "answer"}
			path = at[0].request("ada", http.MethodPost, intents, `{"title": "Ask", "body": "ask"}`).header.Get("Location")
			wait.Until(t, "it asks", func() bool { return at[0].request("ada", http.MethodGet, path, "").body["waiting"] == "clarification" })
		default:
			path, _ = at[0].proposed(fmt.Sprint("two-gateways-", n))
		}
		var actions [2]string
		var forms [2]url.Values
		for i, b := range people {
			actions[i], forms[i] = b.get(consolePath(path)).form(t, path, decisions[i])
			if decisions[i] == "answer" {
				forms[i].Set("answer", []string{"blue", "red"}[i])
			}
		}
		var answers [2]page
		var sent sync.WaitGroup
		for i, b := range people {
			sent.Go(func() { answers[i] = b.do(http.MethodPost, actions[i], forms[i]) })
		}
		sent.Wait()
		first := 0
		if answers[0].status != http.StatusSeeOther {
			first = 1
		}
		other := 1 - first
		if answers[first].status != http.StatusSeeOther {
			t.Fatalf("%s: nobody's counts: %d %s\n%d %s", about, answers[0].status, answers[0].text, answers[1].status, answers[1].text)
		}
		answers[other].wants(t, about, http.StatusConflict, "<strong><bdi>"+who[first]+"</bdi></strong>", decisions[first])
		made := 0
		for _, d := range at[0].request("ada", http.MethodGet, path, "").body["decisions"].([]any) {
			if one := d.(map[string]any); one["what"] == decisions[0] || one["what"] == decisions[1] {
				if made++; one["by"] != who[first] {
					t.Errorf("%s: the journal has %v", about, one)
				}
			}
		}
		if made != 1 {
			t.Errorf("%s: %d count", about, made)
		}
		// The one whose decision counts sends it once more, by the other gateway.
		there := &browser{w: at[other], cookie: people[first].cookie}
		there.do(http.MethodPost, actions[first], forms[first]).wants(t, about+", sent again", http.StatusOK, "It was done")
	}
}
