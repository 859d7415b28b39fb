package auditlog

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/runner/audit"
)

// entry is a record of a machine with events that were decided at a time.
func entry(key forge.Key, seq uint64, at time.Time, list ...forge.Event) *journal.Entry {
	for i := range list {
		list[i].To, list[i].At = key, at
	}
	e := journal.Entry{Key: key, Record: &forge.Record{Events: list}}
	e.Ref = chain.Ref{Subject: "forge.journal.shop." + string(key.Intent), Seq: seq}
	return &e
}

// exported returns the lines that an export of records prints.
func exported(t *testing.T, list ...*journal.Entry) []string {
	t.Helper()
	c := collection{Reader: audit.NewReader(forge.Key{}), wants: func(time.Time) bool { return true }}
	for _, e := range list {
		if err := c.add(e); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := c.print(&kit.App{Out: &out}); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

var (
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	intent  = forge.Key{Project: "shop", Intent: "one"}
	project = intent.ProjectKey()
)

// TestExportSteersNoTerminal: text of others is in an export as it was written,
// and nothing of it reaches a terminal as anything but printable ASCII.
func TestExportSteersNoTerminal(t *testing.T) {
	const nasty = "a\x1b[2Jb\u009b31m\u202ec\u2028\r\n\x7f\"\\<é😀>"
	lines := exported(t, entry(intent, 1, noon, forge.Event{ID: nasty, Actor: nasty, Message: &forge.Reject{Reason: nasty}}))
	for _, c := range []byte(lines[0]) {
		if c < ' ' || c > '~' {
			t.Fatalf("byte %#x in %s", c, lines[0])
		}
	}
	var got struct{ Data document.Audited }
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil || len(lines) != 1 {
		t.Fatal(err, lines)
	}
	if got.Data.Reason != nasty || got.Data.Author.Name != nasty || got.Data.Record.Event != nasty {
		t.Errorf("%+v", got.Data)
	}
}

// TestExportOrder: the order is that of the decisions across journals, and of
// the records within a stream, also where the clock of a runner was behind.
func TestExportOrder(t *testing.T) {
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	ev := func(id string) forge.Event { return forge.Event{ID: id, Actor: "ada", Message: &forge.Pause{}} }
	lines := exported(t,
		entry(project, 1, at(2), ev("p2")), entry(project, 2, at(6), ev("p6")),
		entry(intent, 1, at(1), ev("i1")), entry(intent, 2, at(5), ev("i5"), ev("i5b")), entry(intent, 3, at(3), ev("i3")), entry(intent, 4, at(7), ev("i7")),
		entry(project, 3, at(8), ev("p8")),
	)
	var got []string
	for _, l := range lines {
		var one struct{ Data document.Audited }
		if err := json.Unmarshal([]byte(l), &one); err != nil {
			t.Fatal(err)
		}
		got = append(got, one.Data.Record.Event)
	}
	if want := "i1 p2 i5 i5b i3 p6 i7 p8"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestExportedActions: everything that people, systems and workers do is
// exported, and nothing that machines and timers only tell one another.
func TestExportedActions(t *testing.T) {
	for _, spec := range messages.All() {
		ev := forge.Event{ID: "x", To: intent, Message: spec.Message}
		if _, ok := spec.Message.(*forge.Result); ok {
			ev.Message = &forge.Result{To: intent, Attempt: forge.Attempt{Step: forge.StepAnalyze}}
		}
		_, ok := audit.Describe(&ev)
		if want := spec.From == messages.PartyPerson || spec.From == messages.PartyWorker; ok != want {
			t.Errorf("%T of %s is exported: %v", spec.Message, spec.From, ok)
		}
	}
}

// TestNamedWithTheirGateway: who acts through a gateway is exported together with it.
func TestNamedWithTheirGateway(t *testing.T) {
	ev := forge.Event{ID: "x", To: intent, Actor: "ada", Via: "gateway", Account: "token ada-laptop", Ref: "r1", Message: &forge.Approve{Plan: "a"}}
	got, _ := audit.Describe(&ev)
	if got.Author.Name != "ada" || got.Author.Kind != "person" || got.Author.Gateway == nil ||
		*got.Author.Gateway != (document.AuditGateway{Name: "gateway", Account: "token ada-laptop", Ref: "r1"}) {
		t.Errorf("got %+v", got.Author)
	}
	ev.Via, ev.Account, ev.Ref = "ada", "", ""
	if got, _ := audit.Describe(&ev); got.Author.Gateway != nil {
		t.Errorf("without a gateway: %+v", got.Author.Gateway)
	}
}

// TestWhatIsNoRecordDamagesNothing: a message that is no record is named, and leaves the journals
// whole, by which the exit code is 0. Whoever may have the server answer could else have every
// check of the journals fail, as its answers land there. What is broken or missing does damage.
func TestWhatIsNoRecordDamagesNothing(t *testing.T) {
	const journal = "forge.journal.shop.one"
	first := chain.Link{Ref: chain.Ref{Subject: journal, Seq: 1, Hash: chain.Hash{1}}}
	for name, tt := range map[string]struct {
		link  chain.Link
		kind  chain.Kind
		whole bool
	}{
		"no record": {chain.Link{Other: "an answer of the server"}, chain.Foreign, true},
		"broken":    {chain.Link{Broken: &chain.Break{Reason: "it was moved"}}, chain.Broken, false},
		"missing":   {chain.Link{Anchors: []string{(&chain.Ref{Subject: journal, Seq: 1, Hash: chain.Hash{9}}).String()}}, chain.Missing, false},
	} {
		a := audit.Chains(project)
		a.Add(&first)
		tt.link.Ref = chain.Ref{Subject: journal, Seq: 2, Hash: chain.Hash{2}}
		a.Add(&tt.link)
		rep := reportOf(a, nil)
		if rep.Whole != tt.whole || len(rep.Findings) != 1 || rep.Findings[0].Kind != tt.kind {
			t.Errorf("%s: %+v", name, rep)
		}
	}
}
