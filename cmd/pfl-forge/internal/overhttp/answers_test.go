package overhttp

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge"
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

// TestLostAnswers: what was done before its answer was lost is asked for again under the same name, and counts as done; a second wish, or an
// intent by its id, is known by its name as well.
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

// TestSaysThatItWaits: a person is told once that there is no answer yet and why, however often it is asked again, and nothing where
// there is an answer.
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
