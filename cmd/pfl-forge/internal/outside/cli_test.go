package outside

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// ran has the exit code of a command and all that it printed.
type ran struct {
	code      kit.Exit
	out, errs string
}

// byHTTP runs a command at the gateway, as the holder of a token.
func (w *world) byHTTP(who string, args ...string) ran {
	w.t.Helper()
	return w.command(w.base, map[string]string{"PFL_FORGE_TOKEN": w.secrets[who]}, args...)
}

// byNATS runs a command on the server of NATS.
func (w *world) byNATS(args ...string) ran {
	w.t.Helper()
	return w.command(w.nats.URL(), nil, args...)
}

func (w *world) command(server string, env map[string]string, args ...string) ran {
	w.t.Helper()
	var out, errs testoutput.Output
	args = append([]string{"-C", filepath.Dir(w.file), "--server", server, "--project", "shop"}, args...)
	code := cli.Main(args, strings.NewReader(""), &out, &errs, func(name string) string { return env[name] })
	return ran{kit.Exit(code), out.String(), errs.String()}
}

// wants checks the exit code of a command, and what it says.
func (r ran) wants(t testing.TB, about string, code kit.Exit, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("%s: exit code %d, want %d: %s%s", about, r.code, code, r.out, r.errs)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.errs, text) {
			t.Errorf("%s: it says %q and %q, want %q", about, r.out, r.errs, text)
		}
	}
}

// waitsFor waits until the intent of the tests waits for something, and returns its plan.
func (w *world) waitsFor(what string) (plan string) {
	w.t.Helper()
	wait.Until(w.t, "it waits for "+what, func() bool {
		var d struct {
			Intents []struct{ Waiting, Plan string }
		}
		listed := w.byHTTP("ada", "status", "--label", "garden", "-o", "json")
		if err := json.Unmarshal([]byte(listed.out), &d); err != nil || len(d.Intents) == 0 {
			return false
		}
		plan = d.Intents[0].Plan
		return d.Intents[0].Waiting == what
	})
	return plan
}

// asksFirst has the analyzer ask a question, and find a risky task once it is
// answered and the channel is closed.
func (w *world) asksFirst(released <-chan struct{}) {
	w.analysis = func(c *forge.Command) *forge.Analysis {
		if len(c.Intent.Clarifications) == 0 {
			return &forge.Analysis{Clarifications: []forge.Clarification{{Question: "Which\x1b[31m?", SuggestedAnswers: []string{"blue", "red"}}}}
		}
		<-released
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "Paint it", Plan: "Take a brush."}}}
	}
}

// TestCommandsByHTTP takes an intent from its submission to its merge by the command line
// alone, at a gateway and with tokens: a question is answered, a plan approved by its hash,
// and a viewer watches meanwhile. What a role does not allow is told with the role that does.
func TestCommandsByHTTP(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	released := make(chan struct{})
	w.asksFirst(released)
	w.decides(quota.Limits{})
	w.works()
	w.byHTTP("ada", "status").wants(t, "nothing yet", kit.ExitOK, "no intents yet")
	w.byHTTP("viewer", "create", "paint", "--title", "Paint the shed").
		wants(t, "a viewer asks", kit.ExitError, "this token may not submit in this project: that takes the role requester", "operator of the gateway")
	w.byHTTP("ada", "create", "paint", "--title", "Paint the shed", "--label", "garden", "--body", "It is grey.").wants(t, "create", kit.ExitOK, "paint\n")
	w.byHTTP("ada", "create", "paint", "--title", "Paint the shed", "--label", "garden", "--body", "It is grey.").wants(t, "once more", kit.ExitOK, "paint\n")
	w.byHTTP("ada", "create", "paint", "--title", "Another shed").wants(t, "another one", kit.ExitError, "id: ")

	w.waitsFor("clarification")
	w.byHTTP("ada", "inbox", "--list").wants(t, "inbox", kit.ExitOK, "Paint the shed", "Which?", "answer paint 1 ")
	w.byHTTP("bob", "answer", "paint", "7", "blue").wants(t, "no such question", kit.ExitError)
	w.byHTTP("ada", "answer", "paint", "1", "blue").wants(t, "answer", kit.ExitOK, "answered")
	w.watched(released)

	plan := w.waitsFor("approval")
	w.byHTTP("ada", "approve", "paint", "--plan", "000000000000").wants(t, "another hash", kit.ExitError, "paint: ", "000000000000")
	w.byHTTP("viewer", "approve", "paint", "--plan", plan).wants(t, "a viewer", kit.ExitError, "that takes the role approver")
	w.byHTTP("bob", "approve", "paint", "--plan", plan).wants(t, "approve", kit.ExitOK, "paint approved")
	wait.Until(t, "it is done", func() bool { return strings.Contains(w.byHTTP("viewer", "show", "paint").out, "status:      done") })
	w.byHTTP("viewer", "show", "paint").wants(t, "show", kit.ExitOK, "approve by bob via gateway, plan "+plan, "It is grey.", "merged as "+commit(99)[:10])
	w.byHTTP("bob", "approve", "paint").wants(t, "once more", kit.ExitOK, "paint unchanged: it was done before")
	w.byHTTP("ada", "show", "other").wants(t, "no intent", kit.ExitError, "there is no intent other; see `pfl-forge")
	w.byHTTP("ada", "retry", "other").wants(t, "no intent", kit.ExitError)
	w.byHTTP("ada", "pause", "--all").wants(t, "the project", kit.ExitError, "the whole project")
	w.byHTTP("viewer", "__complete", "show", "").wants(t, "completion", kit.ExitOK, "paint\tPaint the shed")
	w.request("viewer", http.MethodGet, "/api/v1/projects/shop/whole", "").wants(t, "overview", http.StatusOK, `"title":"Paint the shed"`)
	w.request("viewer", http.MethodGet, intents+"/paint/whole?records=1", "").wants(t, "whole", http.StatusOK, `"plan":"Take a brush."`)
	w.request("viewer", http.MethodGet, intents+"/paint/whole?records=-1", "").wants(t, "no number", http.StatusBadRequest, `"field":"records"`)
	w.request("viewer", http.MethodGet, intents+"/none/whole", "").wants(t, "none", http.StatusNotFound)
	w.byHTTP("viewer", "settings").wants(t, "settings", kit.ExitOK, "base_branch")
	w.byHTTP("ada", "run").wants(t, "run", kit.ExitError, "run does not work by HTTP: it works in a repository")
	w.byHTTP("banker", "status").wants(t, "another project", kit.ExitError, "this token has no role in this project")
	w.byHTTP("former", "status").wants(t, "expired", kit.ExitError, "this token has expired", "PFL_FORGE_TOKEN")
	w.byHTTP("nobody", "status").wants(t, "no token", kit.ExitError, "a token is missing: put it into PFL_FORGE_TOKEN, or into the file of --token-file")
	for name, secret := range w.secrets {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log of the gateway has the token of %s", name)
		}
	}
}

// watched watches while the analyzer waits, until it is known that the watch hears of
// what happens, and then until it ends by itself: something waits for a person again.
func (w *world) watched(released chan<- struct{}) {
	w.t.Helper()
	var said testoutput.Output
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main([]string{"-C", filepath.Dir(w.file), "--server", w.base, "--project", "shop", "status", "--watch"}, strings.NewReader(""), &said, &said,
			func(name string) string { return map[string]string{"PFL_FORGE_TOKEN": w.secrets["viewer"]}[name] })
	}()
	n := 0
	wait.Until(w.t, "the watch tells of another intent", func() bool {
		n++
		w.byHTTP("ada", "create", fmt.Sprintf("noise-%d", n), "--title", "Noise").wants(w.t, "noise", kit.ExitOK)
		return strings.Contains(said.String(), "submitted by ada via gateway: Noise")
	})
	close(released)
	if code := wait.For(w.t, ended); code != int(kit.ExitOK) || !strings.Contains(said.String(), "paint                     analyze 3: 1 task") {
		w.t.Errorf("the watch ends with %d, and says %s", code, said.String())
	}
}

// TestSameByHTTP compares what commands print at a gateway with what they print
// on the server of NATS: it is the same, in text and as data.
func TestSameByHTTP(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	w.works()
	path, plan := w.proposed("same")
	id := path[strings.LastIndexByte(path, '/')+1:]
	w.request("bob", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`).wants(t, "approve", http.StatusOK)
	wait.Until(t, "it is done", func() bool { return w.request("ada", http.MethodGet, path, "").body["status"] == "done" })
	waits, _ := w.proposed("waits")
	waiting := waits[strings.LastIndexByte(waits, '/')+1:]
	for _, args := range [][]string{
		{"status", "-o", "json"},
		{"status", "-o", "name"},
		{"status", "--waiting", "approval", "-o", "yaml"},
		{"inbox", "-o", "json"},
		{"clarifications", "-o", "json"},
		{"show", id},
		{"show", id, "-o", "json"},
		{"show", id + "-001", "-o", "yaml"},
		{"show", waiting},
		{"show", waiting + "-001"},
		{"history"},
		{"history", "-o", "json"},
		{"history", id},
		{"history", id, "-o", "json"},
		{"diff", id},
		{"diff", id, "--stat"},
		{"logs", id},
		{"logs", id, "-o", "json"},
		{"costs"},
		{"costs", "--by", "agent", "-o", "json"},
		{"health", "-o", "json"},
		{"queue", "-o", "json"},
		{"schedules", "-o", "json"},
		{"replay", id},
		{"goal", "list"},
		{"show", "none"},
		{"history", "none"},
		{"__complete", "approve", ""},
		{"__complete", "show", ""},
	} {
		http, nats := w.byHTTP("viewer", args...), w.byNATS(args...)
		nats.errs, nats.out = strings.ReplaceAll(nats.errs, w.nats.URL(), w.base), strings.ReplaceAll(nats.out, w.nats.URL(), w.base)
		if http.code != nats.code || http.out != nats.out || !sameLines(http.errs, nats.errs) {
			t.Errorf("%v: by HTTP exit code %d,\n%s%s\nby NATS %d,\n%s%s", args, http.code, cut(http.out), http.errs, nats.code, cut(nats.out), nats.errs)
		}
	}
}

// sameLines reports whether two texts of hints say the same, but for the flags
// that are repeated and the folder of the test.
func sameLines(a, b string) bool {
	words := func(s string) []string {
		return slices.DeleteFunc(strings.Fields(s), func(word string) bool { return strings.HasPrefix(word, "-") || strings.Contains(word, "/") })
	}
	return slices.Equal(words(a), words(b))
}

// cut returns the beginning of a long text.
func cut(s string) string { return s[:min(len(s), 3000)] }
