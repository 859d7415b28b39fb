package overhttp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// gatewayOnce is a gateway that does what it is asked for, and loses its first answers.
type gatewayOnce struct {
	mu   sync.Mutex
	lost int
	// did has what was asked for, by its key or its id.
	did  map[string]int
	keys []string
}

func (g *gatewayOnce) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key") + string(body)
	g.keys = append(g.keys, key)
	g.did[key]++
	if g.lost--; g.lost >= 0 {
		panic(http.ErrAbortHandler) // after it was done
	}
	result := "applied"
	if g.did[key] > 1 {
		result = "known"
	}
	says(200, "application/json", `{"project":"shop","intent":"a","result":"`+result+`"}`)(w, r)
}

// TestLostAnswers: what was done before its answer was lost is asked for again under the same
// name, and counts as done; a second wish, or an intent by its id, is known by its name as well.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	to := forge.Key{Project: "shop", Intent: "a"}
	for name, m := range map[string]forge.Message{
		"a wish":    &forge.Approve{Plan: "d6b94d4dcc51"},
		"an intent": &forge.Submit{Intent: forge.Intent{ID: "a", Settings: forge.Settings{Title: "t", Body: "b"}}},
	} {
		g := &gatewayOnce{lost: 2, did: map[string]int{}}
		c := client(t, serve(t, g.ServeHTTP))
		r, err := c.Ask(wait.Context(t), forge.Event{To: to, Message: m})
		if err != nil || r.Decision != forge.Applied || len(g.did) != 1 || len(g.keys) != 3 {
			t.Errorf("%s: %+v, %v after %q", name, r, err, g.keys)
		}
		r, err = c.Ask(wait.Context(t), forge.Event{To: to, Message: m})
		if name == "an intent" && (err != nil || r.Decision != forge.Ignored || len(g.did) != 1) {
			t.Errorf("%s again: %+v, %v after %q", name, r, err, g.keys)
		}
		g.lost = 100
		_, err = c.Ask(wait.Context(t), forge.Event{To: to, Message: m})
		if name == "an intent" {
			wants(t, name, err, "it is not known whether a was stored: create it again by this id, and it is stored once")
		} else {
			wants(t, name, err, "it is not known whether this was done: see pfl-forge show a before you ask again")
		}
	}
}

// TestSaysThatItWaits: a person is told once that there is no answer yet and
// why, however often it is asked again, and nothing where there is an answer.
func TestSaysThatItWaits(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"away":    {says(503, "application/problem+json", `{"detail": "it cannot be read now: ask again"}`), "the gateway says 503 Service Unavailable"},
		"there":   {says(200, "application/json", `{"result":"applied"}`), ""},
		"refuses": {says(403, "application/problem+json", `{"detail": "no"}`), ""},
	} {
		var told []string
		c, err := New(Config{
			Server: serve(t, one.handler), Token: secret, Project: "shop", Log: slog.New(slog.DiscardHandler),
			Say: func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		c.bounds.tries = 3
		for range 2 {
			_, _ = c.Ask(wait.Context(t), forge.Event{To: forge.Key{Project: "shop", Intent: "a"}, Message: &forge.Cancel{}})
		}
		if text := strings.Join(told, "\n"); len(told) > 1 || (text == "") != (one.want == "") || !strings.Contains(text, one.want) {
			t.Errorf("%s: told is %q", name, told)
		}
	}
}

// TestRefusals: each refusal is told by its fields, or in the gateway's words, with what to do;
// those that end by themselves are asked again, as soon as the gateway says and not for long.
func TestRefusals(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	ask := func(c *Client) (forge.Ruling, error) {
		return c.Ask(ctx, forge.Event{To: forge.Key{Project: "shop", Intent: "a"}, Message: &forge.Cancel{}})
	}
	refuses := func(status int, after, text string, asked *atomic.Int32) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) > 2 {
				says(200, "application/json", `{"result":"applied"}`)(w, r)
				return
			}
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			says(status, "application/problem+json", text)(w, r)
		}
	}
	for _, one := range []struct {
		status      int
		after, text string
		want        string // of the error; empty: it is done
		asked       int32
	}{
		{401, "", `{"detail": "this token has expired"}`, "this token has expired; give a token that counts in PFL_FORGE_TOKEN", 1},
		{403, "", `{"detail": "that takes the role approver"}`, "that takes the role approver; the operator of the gateway gives roles", 1},
		{400, "", `{"errors": [{"field": "reason", "reason": "is long"}, {"reason": "no"}]}`, "reason: is long; no", 1},
		{413, "", `{"detail": "the content may have 512 KiB"}`, "512 KiB", 1},
		{429, "1", `{"detail": "this token asks too often"}`, "", 3},
		{503, "", `{"detail": "no runner is up: nothing was done"}`, "", 3},
		{503, "3600", `{"detail": "no runner is up: nothing was done"}`, "try again in 1h0m0s", 1},
		{500, "", `{"detail": "broken"}`, "broken; it is not known whether this was done: see pfl-forge show a", 1},
		{
			503, "3600", `{"detail": "it is not known whether this was done: ask again, with the same Idempotency-Key"}`,
			"the gateway had no answer of a runner; it is not known whether this was done: see pfl-forge show a", 1,
		},
	} {
		var asked atomic.Int32
		r, err := ask(client(t, serve(t, refuses(one.status, one.after, one.text, &asked))))
		switch {
		case one.want != "":
			wants(t, one.text, err, one.want)
		case err != nil || r.Decision != forge.Applied:
			t.Errorf("%d: %+v, %v", one.status, r, err)
		}
		if n := asked.Load(); n != one.asked {
			t.Errorf("%d %s: asked %d times, want %d", one.status, one.after, n, one.asked)
		}
	}
	var asked atomic.Int32
	r, err := ask(client(t, serve(t, refuses(409, "", `{"errors": [{"field": "plan", "reason": "is another one"}]}`, &asked))))
	if err != nil || r.Decision != forge.Refused || r.Field != "plan" || r.Reason != "plan: is another one" {
		t.Errorf("a refusal of the rules is %+v, %v", r, err)
	}
	_, err = client(t, "http://127.0.0.1:1").Ask(ctx, forge.Event{To: forge.Key{Project: "shop"}, Message: &forge.Pause{}})
	wants(t, "the whole project", err, "name the intents")
}

// TestPagesOfAChange puts the pages of a change together: a file, and a hunk,
// that are cut by a page are one.
func TestPagesOfAChange(t *testing.T) {
	t.Parallel()
	hunk := func(text string) document.DiffHunk {
		return document.DiffHunk{OldStart: 1, OldLines: 3, NewStart: 1, NewLines: 3, Lines: []document.DiffLine{{Op: "+", Text: text}}}
	}
	other := document.DiffHunk{OldStart: 9, OldLines: 1, NewStart: 9, NewLines: 1}
	got := joined([]document.DiffFile{{Path: "a", Hunks: []document.DiffHunk{hunk("1")}}},
		[]document.DiffFile{{Path: "a", Hunks: []document.DiffHunk{hunk("2"), other}}, {Path: "b"}})
	if len(got) != 2 || len(got[0].Hunks) != 2 || len(got[0].Hunks[0].Lines) != 2 || got[0].Hunks[0].Lines[1].Text != "2" {
		t.Errorf("it is %+v", got)
	}
}

// TestGivingUp: what a person interrupts is given up at once.
func TestGivingUp(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	c := client(t, serve(t, func(_ http.ResponseWriter, r *http.Request) { close(asked); <-r.Context().Done() }))
	ctx, cancel := context.WithCancel(wait.Context(t))
	ended := make(chan error, 1)
	go func() { _, err := c.Overview(ctx); ended <- err }()
	wait.For(t, asked)
	cancel()
	if err := wait.For(t, ended); err == nil {
		t.Error("it has an answer")
	}
}
