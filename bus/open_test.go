package bus_test

import (
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/encoding/protowire"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestOpen: who goes on from a list of open intents gets what a look at every
// journal gets, whatever was written, cannot be read or was taken away meanwhile,
// and reads only what followed. A list that is not of this stream is not used.
func TestOpen(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	heads := map[forge.Key]chain.Head{}
	write := func(id forge.IntentID, ended bool) {
		t.Helper()
		k := forge.Key{Project: "shop", Intent: id}
		rec := record(k, int(heads[k].Seq))
		if ended {
			rec.Summary.Status, rec.Summary.Idle = forge.StatusDone, true
		}
		head, err := b.Journal.Append(ctx, k, heads[k], rec)
		if err != nil {
			t.Fatal(err)
		}
		heads[k] = head
	}
	var last journal.Open
	open := func(before journal.Open) (now journal.Open, ids []string) {
		t.Helper()
		now, err := b.Journal.Open(ctx, before)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range now.Intents {
			ids = append(ids, string(k.Intent))
		}
		return now, ids
	}
	is := func(about string, whole bool, want ...string) {
		t.Helper()
		now, got := open(last)
		_, all := open(journal.Open{})
		if now.Whole != whole || !slices.Equal(got, want) || !slices.Equal(all, want) {
			t.Errorf("%s: %v is open (whole: %t), of all %v; want %v (%t)", about, got, now.Whole, all, want, whole)
		}
		last = now
	}
	is("nothing", false)
	write("a", false)
	write("b", true)
	is("the first look", true, "a")
	is("as before", false, "a")
	write("b", false)
	write("c", false)
	write("a", true)
	is("one ended, one goes on, one is new", false, "b", "c")
	before := last
	put(t, raw(t, s), "forge.journal.shop.b", []byte("garbage"))
	put(t, raw(t, s), "forge.journal.shop.d", []byte("garbage"))
	is("garbage decides nothing", false, "b", "c")
	newer := nats.NewMsg("forge.journal.shop.a")
	newer.Data = protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), []byte("\xf8\x3f\x01")) // field 1023 of its summary
	newer.Header.Set(wire.HeaderKind, wire.KindRecord)
	if _, err := jetStream(t, raw(t, s)).PublishMsg(ctx, newer); err != nil {
		t.Fatal(err)
	}
	is("a newer version knows", false, "a", "b", "c")
	if now, ids := open(before); now.Whole || !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Errorf("from an older list: %v (whole: %t)", ids, now.Whole)
	}

	for about, change := range map[string]func(*journal.Open){
		"another message":  func(o *journal.Open) { o.Hash = chain.Start("x") },
		"of another time":  func(o *journal.Open) { o.At = o.At.Add(1) },
		"of later":         func(o *journal.Open) { o.Seq += 100 },
		"no intent":        func(o *journal.Open) { o.Intents = []forge.Key{{Project: "shop", Intent: "> *"}} },
		"of another count": func(o *journal.Open) { o.Gone = 7 },
	} {
		wrong := last
		change(&wrong)
		if now, ids := open(wrong); !now.Whole || !slices.Equal(ids, []string{"a", "b", "c"}) {
			t.Errorf("%s: %v (whole: %t)", about, ids, now.Whole)
		}
	}

	s.Forget(t, "FORGE_JOURNAL", 2) // garbage of d, and what is newer of a
	is("messages are gone", true, "a")
	s.DeleteStream(t, "FORGE_JOURNAL")
	b = s.Connect(t)
	clear(heads)
	write("e", false)
	is("another stream", true, "e")
}
