package overhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document/whole"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// project is a gateway with one intent, on which something is decided whenever
// the test says so. Its streams end as the test says.
type project struct {
	mu sync.Mutex
	// at is how often something was decided.
	at int
	// last are the ids that the streams were asked for after.
	last []string
	// told is written into the next stream, which ends after it.
	told chan string
	// large has the intent refused as a whole.
	large bool
}

// decide has something decided, and tells it.
func (p *project) decide() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at++
	return fmt.Sprintf("id: %d\nevent: changed\ndata: {\"data\": {\"project\": \"shop\", \"intent\": \"a\", \"newer\": 1}}\n\n", p.at)
}

// summary is that of the intent after n decisions.
func (p *project) summary() forge.Summary {
	s := forge.Summary{
		Key: forge.Key{Project: "shop", Intent: "a"}, Title: "t", Status: forge.StatusExecuting,
		UpdatedAt: time.Unix(int64(p.at), 0).UTC(),
	}
	s.Activity, s.Idle = fmt.Sprintf("step %d", p.at), p.at >= 3
	return s
}

func (p *project) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/events") {
		p.mu.Lock()
		p.last = append(p.last, r.Header.Get("Last-Event-ID"))
		p.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": follows\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case text := <-p.told:
			_, _ = io.WriteString(w, text)
		case <-r.Context().Done():
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.summary()
	answer := whole.Answer{List: &whole.List{Intents: []forge.Summary{s}}}
	if strings.HasSuffix(r.URL.Path, "/intents/a/whole") {
		if p.large {
			says(409, "application/problem+json", `{"errors": [{"field": "intent", "reason": "is too large"}]}`)(w, r)
			return
		}
		answer = whole.Answer{Intent: &whole.Intent{View: forge.View{Summary: s, Intent: forge.Intent{ID: "a"}}}}
	}
	data, err := answer.JSON()
	if err != nil {
		panic(err) // the test ends by it
	}
	says(200, "application/json", string(data))(w, r)
}

// TestStreamGoesOn: a stream that is cut off is asked for again after the last
// event that came, also if an event was cut in two.
func TestStreamGoesOn(t *testing.T) {
	t.Parallel()
	p := &project{told: make(chan string)}
	c := client(t, serve(t, p.ServeHTTP))
	ctx, cancel := context.WithCancel(wait.Context(t))
	begun, changed, ended := make(chan struct{}, 10), make(chan forge.IntentID, 10), make(chan error, 1)
	go func() {
		ended <- c.follow(ctx, listener{begun: func() { begun <- struct{}{} }, changed: func(id forge.IntentID) { changed <- id }})
	}()
	for _, text := range []string{
		p.decide() + p.decide(),
		"id: 7\ndata: {\"data\": {\"inte",       // which is not the last one that came
		"id: ../x\x1b\ndata: {\"data\": 1}\n\n", // nor is that an id
		p.decide(),
	} {
		wait.For(t, begun)
		p.told <- text
	}
	for range 3 {
		if id := wait.For(t, changed); id != "a" {
			t.Errorf("%s has changed", id)
		}
	}
	wait.For(t, begun)
	cancel()
	if err := wait.For(t, ended); err == nil {
		t.Error("it ends by itself")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := []string{"", "2", "2", "2", "3"}; !slices.Equal(p.last, want) {
		t.Errorf("asked for after %q, want %q", p.last, want)
	}
}

// TestStreamIsRefused: a token that ends, ends the stream; and so does what is no stream.
func TestStreamIsRefused(t *testing.T) {
	t.Parallel()
	for want, answer := range map[string]http.HandlerFunc{
		"this token has expired":   says(401, "application/problem+json", `{"detail": "this token has expired"}`),
		"answers with a web page":  says(200, "text/html", "<html>"),
		"in more than 1048576":     says(200, "text/event-stream", "data: "+strings.Repeat("x", 2<<20)),
		"the server sends on to x": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "x://x/", http.StatusFound) },
	} {
		err := client(t, serve(t, answer)).follow(wait.Context(t), listener{begun: func() {}, changed: func(forge.IntentID) {}})
		wants(t, want, err, strings.TrimSuffix(want, " x"))
	}
}

// watcher notes what is told.
type watcher struct {
	mu    sync.Mutex
	state int
	last  string // how far the intent was told to be
}

func (w *watcher) Decided(_, after *forge.Summary, _ *forge.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = after.Activity
}

func (w *watcher) State(all []forge.Summary) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state += len(all)
}

// TestWatchEnds: watching ends when nothing is left to do, also if it is not told of the end.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	p := &project{told: make(chan string)}
	c := client(t, serve(t, p.ServeHTTP))
	ended := make(chan error, 1)
	w := &watcher{}
	go func() { ended <- c.Watch(wait.Context(t), w, "", true) }()
	p.told <- p.decide()
	p.decide()
	p.decide() // no event tells of these two: the stream that is asked for again finds them
	if err := wait.For(t, ended); err != nil || w.state != 1 {
		t.Errorf("%v, the state has %d intents", err, w.state)
	}
}

// TestWatchOfLargeIntents: an intent that is too large to be read as a whole ends no watch,
// and its state is told. Who asks for the intent itself is told where it can be read.
func TestWatchOfLargeIntents(t *testing.T) {
	t.Parallel()
	p := &project{told: make(chan string), large: true}
	c := client(t, serve(t, p.ServeHTTP))
	ended := make(chan error, 1)
	w := &watcher{}
	go func() { ended <- c.Watch(wait.Context(t), w, "", true) }()
	p.told <- p.decide()
	wait.Until(t, "the first state is told", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.state == 1 })
	p.decide()
	p.told <- p.decide()
	if err := wait.For(t, ended); err != nil || w.last != "step 3" {
		t.Errorf("%v, the last state is %q", err, w.last)
	}
	_, _, err := c.Whole(wait.Context(t), "a", 0)
	if wants(t, "the intent", err, "intent a is too large"); !errors.Is(err, ErrLarge) {
		t.Errorf("%v is another error", err)
	}
}

// FuzzAnswers: whatever a server answers with, as an intent, a list, a problem
// or a stream, is read without harm, and steers no terminal.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"intents": [{"title": "\u001b[2J", "key": {"intent": "a"}}], "next": "b"}`))
	f.Add([]byte(`{"view": {"intent": {"id": "a"}}, "records": ["EgA="], "attempts": [{"step": "review"}]}`))
	f.Add([]byte(`{"detail": "\u009b31m", "errors": [{"field": "f", "reason": "r"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if l, err := whole.ParseList(data); err == nil {
			clean(&l)
			if text := fmt.Sprintf("%+v", l); strings.ContainsAny(text, "\x1b\x07\u009b\u202e") {
				t.Errorf("%q steers a terminal", text)
			}
		}
		if i, err := whole.ParseIntent(data); err == nil {
			clean(&i)
		}
		r := refusalOf(400, http.Header{"Content-Type": {"application/problem+json"}}, data)
		if text := r.Error(); strings.ContainsAny(text, "\x1b\x07\u009b\u202e\n") {
			t.Errorf("%q steers a terminal", text)
		}
		(&listener{changed: func(id forge.IntentID) {
			if _, err := forge.ParseIntentID(string(id)); err != nil {
				t.Error(err)
			}
		}}).deliver(data)
	})
}
