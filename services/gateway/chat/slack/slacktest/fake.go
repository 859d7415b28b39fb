// Package slacktest is a workspace of Slack in the process: a server on this machine
// that speaks the methods of the Web API that package slack uses, keeps their bounds,
// signs what its people press as Slack does, and misbehaves as a test tells it.
//
// # What it refuses, as Slack does
//
//	a token of the other kind, or of none
//	a channel that is not its own
//	blocks that are too long, too many, or have an action twice
//	a message to edit that is gone, or another bot's
//	a dialog for a handle that was used, or has ended
//	a connection for a ticket that was used
//
// # What it refuses, as Slack does not
//
//	texts with markup, and those in which < or > is not escaped
//	a message whose links would be unfurled
//	an answer to a command that has a token with it
//
// # How it misbehaves
//
//	a [Fault]             an answer of any status, none at all, a word for a refusal; each also after the request was carried out
//	[Fake.Twin]           a message of ours that is there twice
//	[Fake.Forge]          a message of another app with our metadata
//	[Fake.Expire]         handles that have ended
//	[Fake.Disconnect]     connections that end, with a word or without
//	[Fake.Envelope]       the same payload in as many envelopes as a test likes
package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// What the workspace has.
const (
	Team     = "T0SHOP001"
	Channel  = "C0SHOP001"
	Bot      = "B0FORGE01"
	BotToken = "xoxb-0123456789-fake"
	AppToken = "xapp-0123456789-fake"
	Secret   = "0123456789abcdef0123456789abcdef"
)

// Message is one in a channel.
type Message struct {
	TS, Channel, Text string
	// Thread is the message below which it stands; empty at the top.
	Thread string
	// Shown has all texts of its blocks, and Buttons those that it has.
	Shown   string
	Buttons []Button
	// Edits counts how often it was edited.
	Edits int

	bot      string
	metadata json.RawMessage
}

// Button is one of a message.
type Button struct{ Action, Label, Value string }

// Button returns the button with a label.
func (m *Message) Button(label string) (Button, bool) {
	i := slices.IndexFunc(m.Buttons, func(b Button) bool { return b.Label == label })
	if i < 0 {
		return Button{}, false
	}
	return m.Buttons[i], true
}

// Told is a line for one person alone.
type Told struct{ Channel, User, Text string }

// View is a dialog that was opened.
type View struct{ Trigger, Private, Text string }

// Fault is an answer that Slack gives in place of its own.
type Fault struct {
	// Method is that of the Web API.
	Method string
	// Status and Header are the answer's; 0 hangs up. With Error the status is
	// 200, and the word in the answer.
	Status int
	Header http.Header
	Error  string
	// After has the request carried out all the same, so that only the answer is lost.
	After bool
}

// Fake is the workspace.
type Fake struct {
	srv *httptest.Server

	mu sync.Mutex
	// last is the id of the newest thing, in microseconds: ids grow, and no two are the same.
	last     int64
	messages []*Message
	told     []Told
	views    []View
	// triggers are the handles by which a dialog can be opened, and tickets those for connections.
	triggers map[string]bool
	tickets  map[string]bool
	// script has the faults that are still to come, and calls counts the requests of each method.
	script []Fault
	calls  map[string]int
	// limited has the time before which a method is not to be called, by the
	// header of a fault, and early the calls that came all the same.
	limited map[string]time.Time
	early   []string
	// conns are the connections that are open, and acks has the envelopes that
	// are not acknowledged.
	conns []*websocket.Conn
	acks  map[string]chan struct{}
	now   func() time.Time
}

// New returns a Fake.
func New() *Fake {
	f := &Fake{
		triggers: map[string]bool{}, tickets: map[string]bool{}, calls: map[string]int{}, acks: map[string]chan struct{}{}, now: time.Now,
		limited: map[string]time.Time{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", f.serve)
	mux.HandleFunc("GET /link", f.link)
	mux.HandleFunc("POST /commands/", f.replied)
	f.srv = httptest.NewServer(mux)
	return f
}

// Close ends it.
func (f *Fake) Close() {
	f.Disconnect("")
	f.srv.Close()
}

// URL is where its Web API begins.
func (f *Fake) URL() string { return f.srv.URL + "/api" }

// Script has the next requests of the methods answered by faults, each once.
func (f *Fake) Script(list ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = append(f.script, list...)
}

// Calls returns how often a method was called.
func (f *Fake) Calls(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

// Early returns the methods that were called before a fault let them be.
func (f *Fake) Early() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.early)
}

// Messages returns those at the top of the channel, the oldest first.
func (f *Fake) Messages() []Message { return f.where(func(m *Message) bool { return m.Thread == "" }) }

// Replies returns those below a message.
func (f *Fake) Replies(ts string) []Message {
	return f.where(func(m *Message) bool { return m.Thread == ts })
}

// where returns copies of the messages that fit, in their order.
func (f *Fake) where(is func(*Message) bool) (list []Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.messages {
		if is(m) {
			list = append(list, *m)
		}
	}
	return list
}

// Told returns the lines for one person alone.
func (f *Fake) Told(user string) (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.told {
		if t.User == user {
			list = append(list, t.Text)
		}
	}
	return list
}

// Views returns the dialogs that were opened.
func (f *Fake) Views() []View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.views)
}

// Forge posts a message as another app, with any metadata.
func (f *Fake) Forge(bot, metadata string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages = append(f.messages, &Message{TS: f.stamp(), Channel: Channel, bot: bot, metadata: json.RawMessage(metadata)})
}

// Twin posts a message of ours once more, as a second gateway would whose request came late.
func (f *Fake) Twin(ts string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.find(ts); m != nil {
		twin := *m
		twin.TS = f.stamp()
		f.messages = append(f.messages, &twin)
	}
}

// Delete deletes a message, as a person may.
func (f *Fake) Delete(ts string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages = slices.DeleteFunc(f.messages, func(m *Message) bool { return m.TS == ts })
}

// stamp returns the id of a new message.
func (f *Fake) stamp() string {
	f.last = max(f.last+1, f.now().UnixMicro())
	return fmt.Sprintf("%d.%06d", f.last/1e6, f.last%1e6)
}

// find returns the message with an id; nil if there is none.
func (f *Fake) find(ts string) *Message {
	for _, m := range f.messages {
		if m.TS == ts {
			return m
		}
	}
	return nil
}

// serve answers a method of the Web API.
func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	method := r.PathValue("method")
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.calls[method]++
	if f.now().Before(f.limited[method]) {
		f.early = append(f.early, method)
	}
	fault := f.fault(method)
	f.mu.Unlock()
	if fault != nil && !fault.After {
		f.misbehave(w, fault)
		return
	}
	answer := f.carryOut(method, r, body)
	if fault != nil {
		f.misbehave(w, fault)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(marshal(answer)) //nolint:gosec // a fake for tests answers JSON
}

// fault returns the next fault of a method.
func (f *Fake) fault(method string) *Fault {
	i := slices.IndexFunc(f.script, func(x Fault) bool { return x.Method == method })
	if i < 0 {
		return nil
	}
	x := f.script[i]
	f.script = slices.Delete(f.script, i, i+1)
	if seconds, err := strconv.Atoi(x.Header.Get("Retry-After")); err == nil {
		f.limited[method] = f.now().Add(time.Duration(seconds) * time.Second)
	}
	return &x
}

// misbehave answers with a fault.
func (f *Fake) misbehave(w http.ResponseWriter, x *Fault) {
	if x.Error == "" && x.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), x.Header)
	if x.Error != "" {
		_, _ = w.Write(marshal(failed(x.Error)))
		return
	}
	w.WriteHeader(x.Status)
}

// object is a JSON object.
type object = map[string]any

// failed returns the answer for a refusal, which has the status 200.
func failed(word string) object { return object{"ok": false, "error": word} }
