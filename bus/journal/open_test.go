package journal_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// journals has a test store what it wants in the journals of intents.
type journals struct {
	t  *testing.T
	s  *bustest.Server
	b  *bus.Bus
	js jetstream.JetStream
}

func startJournals(t *testing.T) *journals {
	t.Helper()
	s := bustest.StartServer(t)
	j := &journals{t: t, s: s, b: s.Connect(t)}
	nc, err := nats.Connect(s.URL())
	if err == nil {
		t.Cleanup(nc.Close)
		j.js, err = jetstream.New(nc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// store stores a message in the journal of an intent, and returns its sequence.
func (j *journals) store(id string, data []byte) uint64 {
	j.t.Helper()
	m := nats.NewMsg("forge.journal.shop." + id)
	m.Data = data
	m.Header.Set(wire.HeaderKind, wire.KindRecord)
	ack, err := j.js.PublishMsg(j.t.Context(), m)
	if err != nil {
		j.t.Fatal(err)
	}
	return ack.Sequence
}

// record returns a record of an intent that is open or has ended.
func (j *journals) record(id string, ended bool) []byte {
	j.t.Helper()
	rec := forge.Record{Summary: forge.Summary{Key: forge.Key{Project: "shop", Intent: forge.IntentID(id)}, Status: forge.StatusExecuting}}
	if ended {
		rec.Summary.Status, rec.Summary.Idle = forge.StatusDone, true
	}
	data, err := wire.Records.Marshal(&rec)
	if err != nil {
		j.t.Fatal(err)
	}
	return data
}

// aside returns the mark that sets a message of an intent's journal aside.
func (j *journals) aside(id string, seq uint64, message []byte) []byte {
	j.t.Helper()
	mark := journal.Aside{Seq: seq, Hash: chain.Of("forge.journal.shop."+id, message), By: "ada"}
	data, err := json.Marshal(map[string]any{"set_aside": mark})
	if err != nil {
		j.t.Fatal(err)
	}
	return data
}

// place is the newest message of the journal of an intent.
type place struct {
	seq  uint64
	data []byte
}

// happens stores something at random in the journal of one of five intents: a
// record, garbage, a record of a newer version, or a mark that sets the newest
// message aside. last has the newest message of each.
func (j *journals) happens(random *rand.Rand, last map[string]place) {
	j.t.Helper()
	id := []string{"a", "b", "c", "d", "e"}[random.IntN(5)]
	var data []byte
	switch random.IntN(6) {
	case 0, 1:
		data = j.record(id, false)
	case 2, 3:
		data = j.record(id, true)
	case 4:
		data = append(j.record(id, random.IntN(2) == 0), 0xf8, 0x3f, 0x01) // field 1023: of a newer version
	default:
		data = []byte("garbage")
		if at := last[id]; at.seq > 0 {
			data = j.aside(id, at.seq, at.data)
		}
	}
	last[id] = place{j.store(id, data), data}
}

// open returns the list that follows from one before, and its intents.
func (j *journals) open(before journal.Open) (now journal.Open, ids []string) {
	j.t.Helper()
	now, err := j.b.Journal.Open(j.t.Context(), before)
	if err != nil {
		j.t.Fatal(err)
	}
	return now, idsOf(&now)
}

func idsOf(list *journal.Open) (ids []string) {
	for _, k := range list.Intents {
		ids = append(ids, string(k.Intent))
	}
	return ids
}

// TestOpenFromEveryList: from every list that was ever made, one gets what a
// look at every journal gets, whatever was stored since: records, garbage,
// records of a newer version, and marks that set something aside.
func TestOpenFromEveryList(t *testing.T) {
	j := startJournals(t)
	random := rand.New(rand.NewPCG(1, 2))
	last := map[string]place{}
	var lists []journal.Open
	for step := range 60 {
		j.happens(random, last)
		all, want := j.open(journal.Open{})
		lists = append(lists, all)
		i := random.IntN(len(lists))
		if now, got := j.open(lists[i]); now.Whole || !slices.Equal(got, want) {
			t.Fatalf("step %d, from list %d: %v (whole: %t), and of all %v", step, i, got, now.Whole, want)
		}
	}
	_, want := j.open(journal.Open{})
	for i, list := range lists {
		if now, got := j.open(list); now.Whole || !slices.Equal(got, want) {
			t.Errorf("at the end, from list %d: %v (whole: %t), and of all %v", i, got, now.Whole, want)
		}
	}
}

// TestOpenBesideWhatIsLost: what is stored while a list is read does not end an intent in it, since
// a server that fails may lose just that, and then has the message that the list names, and no gap.
func TestOpenBesideWhatIsLost(t *testing.T) {
	j := startJournals(t)
	ctx := wait.Context(t)
	j.store("a", j.record("a", false))
	first, _ := j.open(journal.Open{})
	j.store("b", j.record("b", false))
	j.store("c", j.record("c", true))
	only := j.record("d", false)
	at := j.store("d", only)
	as, _ := j.open(journal.Open{})
	j.store("a", j.record("a", true))
	j.store("b", []byte("garbage"))
	j.store("c", j.record("c", true))
	j.store("d", j.aside("d", at, only))
	for about, before := range map[string]journal.Open{"all": {}, "since": first} {
		now := as
		now.Whole = false
		if err := journal.ReadOpen(j.b.Journal, ctx, &before, &now); err != nil || now.Whole != (about == "all") {
			t.Fatalf("%s: whole: %t, %v", about, now.Whole, err)
		}
		if got := idsOf(&now); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Errorf("%s: %v; want also those that went on behind the list", about, got)
		}
		if later, got := j.open(now); later.Whole || !slices.Equal(got, []string{"b"}) {
			t.Errorf("%s: %v (whole: %t) later; want what is open", about, got, later.Whole)
		}
	}
}

// TestOpenOfAStreamStoredAgain: a message that was stored again, byte for byte
// and with the same sequence, does not say that those before it are the same.
func TestOpenOfAStreamStoredAgain(t *testing.T) {
	j := startJournals(t)
	j.store("a", j.record("a", false))
	j.store("a", j.record("a", true))
	j.store("b", j.record("b", false))
	list, got := j.open(journal.Open{})
	if !slices.Equal(got, []string{"b"}) {
		t.Fatal(got)
	}
	j.s.DeleteStream(t, "FORGE_JOURNAL")
	j.b = j.s.Connect(t)
	j.store("c", j.record("c", false))
	j.store("a", j.record("a", false))
	j.store("b", j.record("b", false))
	if now, got := j.open(list); !now.Whole || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%v (whole: %t)", got, now.Whole)
	}
}

// TestOpenBesideAGap: a list is used only if every message behind it was read,
// whatever was counted as lost.
func TestOpenBesideAGap(t *testing.T) {
	j := startJournals(t)
	j.store("a", j.record("a", false))
	list, _ := j.open(journal.Open{})
	j.store("b", j.record("b", false))
	j.store("c", j.record("c", false))
	in, err := j.js.Stream(t.Context(), "FORGE_JOURNAL")
	if err == nil {
		err = in.Purge(t.Context(), jetstream.WithPurgeSubject("forge.journal.shop.b"))
	}
	if err != nil {
		t.Fatal(err)
	}
	list.Gone = 1
	if now, got := j.open(list); !now.Whole || !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("%v (whole: %t)", got, now.Whole)
	}
}

// TestOpenOfStrangeSubjects: a record whose subject names no intent holds no start up, and no list.
func TestOpenOfStrangeSubjects(t *testing.T) {
	j := startJournals(t)
	j.store("a", j.record("a", false))
	list, _ := j.open(journal.Open{})
	j.store("No!Intent", j.record("b", false))
	for _, before := range []journal.Open{{}, list} {
		if now, got := j.open(before); now.Whole != (before.Seq == 0) || !slices.Equal(got, []string{"a"}) {
			t.Errorf("from %d: %v (whole: %t)", before.Seq, got, now.Whole)
		}
	}
}
