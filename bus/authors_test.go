package bus_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/proof"
)

// keyOf returns the signing key of an account of guardedServer, or of another name.
func keyOf(t *testing.T, account string) *proof.Key {
	t.Helper()
	k, err := proof.Derive([]byte(strings.Repeat(account+"-", 32)), account)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// trusted returns the file of keys of guardedServer's accounts, without some of them.
func trusted(t *testing.T, without ...string) string {
	t.Helper()
	var list proof.Signers
	for _, a := range guardedAccounts(t) {
		if proof.Sends(string(a.Role)) && !slices.Contains(without, a.Name) {
			list = append(list, keyOf(t, a.Name).AccountSigner(string(a.Role)))
		}
	}
	return list.String()
}

// strict is a runner that has every author proven.
type strict struct {
	t    *testing.T
	s    *server.Server
	path string // of the file of keys
	seen chan forge.Event
	// admin may do everything on the server, and has no key.
	admin *nats.Conn
	dead  *bus.Bus
}

// newStrict starts a guarded server, with edits of its configuration, and a
// strict runner. No message of an unknown key waits for its key.
func newStrict(t *testing.T, edits ...string) *strict {
	t.Helper()
	ctx := wait.Context(t)
	st := &strict{t: t, s: guardedServer(t, edits...), path: filepath.Join(t.TempDir(), "allowed_signers"), seen: make(chan forge.Event, 1000)}
	st.trust(trusted(t))
	keys, err := signed.OpenKeys(st.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys.Settling = 0
	b := st.connect("runner", "runner")
	if err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	serveWith(t, b, decide.Config{Authors: keys}, func(ctx context.Context, d *decide.Delivery) error {
		d.Respond(ctx, forge.Ruling{EventID: d.Event.ID, Decision: forge.Applied, Intent: d.Event.To.Intent})
		st.seen <- d.Event
		return nil
	})
	ending, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Submissions.Serve(ending, requests.ServeConfig{Authors: keys}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	st.admin, _ = as(t, st.s, "admin")
	st.dead = connectAs(ctx, t, st.s, "admin", "ADMIN")
	scanner, _ := as(t, st.s, "scanner")
	wait.Until(t, "submissions are answered", func() bool {
		_, err := scanner.Request("forge.api.shop.from.scanner.submit", []byte("{}"), time.Second)
		return err == nil
	})
	return st
}

// trust replaces the file of keys.
func (st *strict) trust(text string) {
	st.t.Helper()
	if err := os.WriteFile(st.path+".new", []byte(text), 0o600); err != nil {
		st.t.Fatal(err)
	}
	if err := os.Rename(st.path+".new", st.path); err != nil {
		st.t.Fatal(err)
	}
}

// connect is a bus of an account, which signs by the key of the account that is
// named; empty: by none.
func (st *strict) connect(user, key string) *bus.Bus {
	st.t.Helper()
	cfg := bus.Config{
		URL:      strings.Replace(st.s.ClientURL(), "://", "://"+user+":"+strings.ToUpper(user)+"@", 1),
		Replicas: 1, InboxPrefix: "_INBOX_" + user, Singly: !slices.Contains([]string{"runner", "admin"}, user),
	}
	if key != "" {
		cfg.Key = func() (*proof.Key, error) { return keyOf(st.t, key), nil }
	}
	b, err := bus.Connect(wait.Context(st.t), cfg)
	if err != nil {
		st.t.Fatal(err)
	}
	st.t.Cleanup(b.Close)
	return b
}

// aside are the dead letters that a server has at one moment.
type aside []bus.DeadLetter

// aside reads all dead letters.
func (st *strict) aside() aside {
	st.t.Helper()
	list, err := st.dead.Dead(wait.Context(st.t))
	if err != nil {
		st.t.Fatal(err)
	}
	return list
}

// reason returns why a message is among the dead letters; empty while it is not.
func (st *strict) reason(subject, excerpt string) string {
	st.t.Helper()
	return st.aside().reason(subject, excerpt)
}

// reason returns why a message is among them; empty if it is not.
func (list aside) reason(subject, excerpt string) string {
	for _, d := range list {
		if d.Subject == subject && strings.Contains(string(d.Excerpt), excerpt) {
			return d.Reason
		}
	}
	return ""
}

// message is one that somebody could send to a runner.
type message struct {
	// about names the message, and whose it is.
	about, author string
	subject       string
	data          []byte
	// mark is in the content, and in the event.
	mark string
}

// messages returns one message of each kind, with a mark. Each has its author in the subject.
func messages(t *testing.T, mark string) []message {
	t.Helper()
	var list []message
	for _, person := range []struct {
		name    string
		project forge.ProjectID
	}{{"ada", "shop"}, {"bob", "bank"}} {
		for _, ev := range []forge.Event{
			{Message: &forge.Approve{Plan: "d6b94d4dcc51"}},
			{Message: &forge.Cancel{}},
		} {
			verb := map[bool]string{true: "approve", false: "cancel"}[forge.As[*forge.Approve](ev.Message) != nil]
			ev.ID, ev.To, ev.Actor = mark+"-"+person.name+"-"+verb, forge.Key{Project: person.project, Intent: key.Intent}, person.name
			data, err := wire.Events.Marshal(&ev)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, message{
				person.name + " " + verb, person.name, "forge.intent." + string(person.project) + ".by." + person.name + "." + verb, data, ev.ID,
			})
		}
	}
	for about, subject := range map[string]string{
		"scanner submits": "forge.intent.shop.from.scanner.submit", "scanner asks": "forge.api.shop.from.scanner.submit",
	} {
		id := mark + "-" + strings.ReplaceAll(about, " ", "-")
		list = append(list, message{about, "scanner", subject, []byte(`{"title": "t", "body": "b", "origin": {"event_id": "` + id + `"}}`), id})
	}
	list = append(list, message{
		"a runner stores", "runner", "forge.intent.shop.submit",
		[]byte(`{"title": "t", "body": "b", "origin": {"system": "scanner", "event_id": "` + mark + `-stored"}}`), mark + "-stored",
	})
	list = append(list, throughGateway(t, mark)...)
	for _, step := range forge.Steps() {
		replica := forge.ReplicaID(mark + "-" + string(step))
		data, err := work.MarshalResult(forge.Result{
			To: key, Attempt: forge.Attempt{Step: step, Number: 1, Claim: 1}, Replica: replica, Output: &forge.Failure{Reason: forge.FailCrashed},
		})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, message{"result of " + string(step), step.Service(), "forge.result." + string(step) + ".shop.fix-login", data, string(replica)})
	}
	return list
}

// throughGateway returns the messages of messages that a gateway hands on.
func throughGateway(t *testing.T, mark string) []message {
	t.Helper()
	approve := forge.Event{ID: mark + "-via", To: key, Actor: "ada", Account: "token ada", Ref: "a request", Message: &forge.Approve{Plan: "d6b94d4dcc51"}}
	submit := forge.Event{Account: "token ci", Message: &forge.Submit{Intent: forge.Intent{
		Settings: forge.Settings{Title: "t", Body: "b"}, Origin: forge.Origin{EventID: mark + "-handed"},
	}}}
	var list []message
	for _, m := range []struct {
		about, subject, mark string
		ev                   forge.Event
	}{
		{"ada approves via gateway", "forge.intent.shop.by.ada.via.gateway.approve", approve.ID, approve},
		{"scanner submits via gateway", "forge.intent.shop.from.scanner.via.gateway.submit", mark + "-handed", submit},
	} {
		data, err := wire.Events.Marshal(&m.ev)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, message{m.about, "gateway", m.subject, data, m.mark})
	}
	return list
}

// send sends a message with the signature of a key, made at a time; without a key with none.
func send(t *testing.T, nc *nats.Conn, m *message, k *proof.Key, at time.Time) {
	t.Helper()
	out := nats.NewMsg(m.subject)
	out.Data = m.data
	out.Header.Set(jetstream.MsgIDHeader, m.mark)
	if k != nil {
		p, err := signed.Sign(k, m.signable(), at)
		if err != nil {
			t.Fatal(err)
		}
		out.Header.Set(signed.Header, p.String())
	}
	transmit(t, nc, m, out)
}

// sendTogether sends messages that a key has signed together, now.
func sendTogether(t *testing.T, nc *nats.Conn, list []message, k *proof.Key) {
	t.Helper()
	for some := range slices.Chunk(list, signed.MaxTogether) {
		var contents []*signed.Message
		for i := range some {
			contents = append(contents, some[i].signable())
		}
		texts, errs := signed.SignAll(k, contents, time.Now())
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for i := range some {
			out := nats.NewMsg(some[i].subject)
			out.Data = some[i].data
			out.Header.Set(jetstream.MsgIDHeader, some[i].mark)
			out.Header.Set(signed.Header, texts[i])
			transmit(t, nc, &some[i], out)
		}
	}
}

// signable returns the message as its sender signs it.
func (m *message) signable() *signed.Message {
	return &signed.Message{Subject: m.subject, ID: m.mark, Payload: m.data}
}

// transmit sends a message as out.
func transmit(t *testing.T, nc *nats.Conn, m *message, out *nats.Msg) {
	t.Helper()
	out.Reply = "_INBOX_" + m.author + ".x" // a runner answers in the inbox of the account in the subject, or not at all
	if err := nc.PublishMsg(out); err != nil {
		t.Fatalf("%s: %v", m.about, err)
	}
}

// markOf returns the mark of the message that an event came as.
func markOf(ev *forge.Event) string {
	if m := forge.As[*forge.Submit](ev.Message); m != nil {
		return m.Intent.Origin.EventID
	}
	if m := forge.As[*forge.Result](ev.Message); m != nil {
		return string(m.Replica)
	}
	return ev.ID
}

// await waits until each of the messages was decided on or is among the dead
// letters, and returns the events by their marks.
func (st *strict) await(list []message) map[string]forge.Event {
	st.t.Helper()
	got := map[string]forge.Event{}
	wait.Until(st.t, "all messages are decided on or put aside", func() bool {
		for len(st.seen) > 0 {
			ev := <-st.seen
			got[markOf(&ev)] = ev
		}
		dead := st.aside()
		return !slices.ContainsFunc(list, func(m message) bool { return got[m.mark].ID == "" && dead.reason(m.subject, m.mark) == "" })
	})
	return got
}

// TestOnlyTheAuthorsWordCounts sends every kind of message in the name of each
// author, over a connection that may publish everything, as a server that was
// taken over could: with the key of each account, each message alone and all
// together, with none, and with one that is unknown. Decided on is what its author
// has signed, and nothing else; each other message is shown with the reason.
func TestOnlyTheAuthorsWordCounts(t *testing.T) {
	t.Parallel()
	st := newStrict(t)
	for _, account := range []string{"", "eve", "ada", "bob", "scanner", "runner", "analyzer", "implementer", "reviewer", "reflector", "gateway"} {
		list := messages(t, "by-"+account+"x")
		if account == "" {
			for i := range list {
				send(t, st.admin, &list[i], nil, time.Now())
			}
			st.checkWords(list, account)
			continue
		}
		for i := range list {
			send(t, st.admin, &list[i], keyOf(t, account), time.Now())
		}
		st.checkWords(list, account)
		list = messages(t, "together-by-"+account+"x")
		sendTogether(t, st.admin, list, keyOf(t, account))
		st.checkWords(list, account)
	}
}

// checkWords waits for messages that an account has signed, and checks that its
// own were decided on.
func (st *strict) checkWords(list []message, account string) {
	st.t.Helper()
	got, dead := st.await(list), st.aside()
	for _, m := range list {
		ev, decided := got[m.mark]
		if decided != (m.author == account) {
			st.t.Errorf("%s signed by %q: decided on: %t", m.about, account, decided)
		}
		if !decided {
			if reason := dead.reason(m.subject, m.mark); !strings.Contains(reason, "sign") {
				st.t.Errorf("%s signed by %q: %s", m.about, account, reason)
			}
			continue
		}
		checkProof(st.t, &ev, m)
	}
}

// checkProof checks what an event keeps of the signature of its message.
func checkProof(t *testing.T, ev *forge.Event, m message) {
	t.Helper()
	want := map[bool]string{true: "runner", false: m.author}[strings.HasPrefix(m.subject, "forge.api.") || m.author == "runner"]
	if ev.Via != want {
		t.Errorf("%s came through %q, want %q", m.about, ev.Via, want)
	}
	if m.author == "runner" {
		if ev.Signature != "" {
			t.Errorf("%s has the signature %q", m.about, ev.Signature)
		}
		return
	}
	p, err := signed.Parse(ev.Signature)
	if err != nil || !p.Holds() || !p.Of(m.data) || p.Subject != m.subject || !slices.Equal(p.Key, keyOf(t, m.author).Public()) {
		t.Errorf("%s keeps the proof %+v, %v", m.about, p, err)
	}
}
