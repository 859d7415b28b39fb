package bus_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/proof"
)

// reach says which messages the whole credential of each kind of account lets a
// thief have decided on, its NATS user and its signing key: what its owner
// could say, and no more. The guide to security says what comes of each.
var reach = map[string][]string{
	"ada":         {"ada approve", "ada cancel"},
	"bob":         {"bob approve", "bob cancel"},
	"scanner":     {"scanner asks", "scanner submits"},
	"tracker":     nil,
	"backup":      nil, // what it puts in place of streams is signed by nobody else
	"gateway":     {"ada approves via gateway", "scanner submits via gateway", "result of open_pull", "result of merge_pull"},
	"auth":        nil, // it certifies people's keys, see TestWordsOfLogins
	"analyzer":    results("analyzer"),
	"implementer": results("implementer"),
	"reviewer":    results("reviewer"),
	"reflector":   results("reflector"),
	"runner":      {"a runner stores"},
	"a task":      nil,
}

// results returns the messages that the worker of a service may send.
func results(service string) (list []string) {
	for _, step := range forge.Steps() {
		if step.Service() == service {
			list = append(list, "result of "+string(step))
		}
	}
	return list
}

// TestStolenCredentials gives a thief the whole credential of each kind: a person's, a system's,
// a follower's, each service's; and of a task, which has none. The thief tries every message with
// it, over its own account. Decided on is what the account's owner could say: nobody approves for
// another, no worker speaks for another step, and only the runner's may store for another.
func TestStolenCredentials(t *testing.T) {
	t.Parallel()
	st := newStrict(t)
	for thief, want := range reach {
		list := messages(t, "of-"+strings.ReplaceAll(thief, " ", "-"))
		if thief == "a task" {
			if nc, err := nats.Connect(st.s.ClientURL()); err == nil {
				nc.Close()
				t.Error("a task, which has no account, is connected")
			}
			continue
		}
		nc, _ := as(t, st.s, thief)
		for i := range list {
			m := &list[i]
			out := nats.NewMsg(m.subject)
			out.Data, out.Reply = m.data, nc.NewInbox()
			out.Header.Set(jetstream.MsgIDHeader, m.mark)
			p, err := signed.Sign(keyOf(t, thief), &signed.Message{Subject: m.subject, ID: m.mark, Payload: m.data}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			out.Header.Set(signed.Header, p.String())
			if err := nc.PublishMsg(out); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.FlushWithContext(wait.Context(t)); err != nil {
			t.Fatal(err)
		}
		last := message{about: "the last one", author: "ada", subject: "forge.intent.shop.by.ada.cancel", mark: "last-" + thief}
		var err error
		if last.data, err = wire.Events.Marshal(&forge.Event{ID: last.mark, To: key, Actor: "ada", Message: &forge.Cancel{}}); err != nil {
			t.Fatal(err)
		}
		expected := slices.DeleteFunc(slices.Clone(list), func(m message) bool { return !slices.Contains(want, m.about) })
		send(t, st.admin, &last, keyOf(t, "ada"), time.Now())
		got := st.await(append(expected, last))
		var reached []string
		for _, m := range list {
			if _, ok := got[m.mark]; ok {
				reached = append(reached, m.about)
			}
		}
		slices.Sort(reached)
		if slices.Sort(want); !slices.Equal(reached, want) {
			t.Errorf("with the credential of %s these are decided on: %v, want %v", thief, reached, want)
		}
	}
	var roles []access.Role
	for _, a := range guardedAccounts(t) {
		if _, ok := reach[a.Name]; !ok {
			t.Errorf("nothing is said of %s", a.Name)
		}
		roles = append(roles, a.Role)
	}
	for _, r := range access.Roles() {
		if !slices.Contains(roles, r) {
			t.Errorf("no account has the role %s", r)
		}
	}
}

// TestSenders says which roles sign what they send: all but followers and backup, who send nothing.
func TestSenders(t *testing.T) {
	t.Parallel()
	got := map[access.Role]bool{}
	for _, r := range access.Roles() {
		if !proof.Sends(string(r)) {
			got[r] = true
		}
	}
	if !maps.Equal(got, map[access.Role]bool{access.Follower: true, access.Backup: true}) {
		t.Errorf("these sign nothing: %v", got)
	}
}
