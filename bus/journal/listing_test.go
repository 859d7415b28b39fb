package journal_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/journal"
)

// lists compares the list that follows from one that was kept with one that is
// made of every journal, and returns it.
func (j *journals) lists(about string, kept []byte) journal.Listing {
	j.t.Helper()
	ctx := j.t.Context()
	want, last, wantErr := j.b.Journal.List(ctx, "shop")
	got, err := j.b.Journal.ListSince(ctx, "shop", kept)
	if (err == nil) != (wantErr == nil) {
		j.t.Fatalf("%s: %v, and of every journal %v", about, err, wantErr)
	}
	if err != nil {
		return got
	}
	if diff := cmp.Diff(want, got.Summaries); diff != "" {
		j.t.Fatalf("%s: the summaries differ:\n%s", about, diff)
	}
	if diff := cmp.Diff(last, got.Sequences); diff != "" {
		j.t.Fatalf("%s: the sequences differ:\n%s", about, diff)
	}
	return got
}

// TestListSince: from every list that was ever kept, one gets what a look at
// every journal gets, whatever was stored since: records, garbage, records of a
// newer version, marks that set something aside, and what other projects decide.
func TestListSince(t *testing.T) {
	j := startJournals(t)
	random := rand.New(rand.NewPCG(3, 4))
	ids := []string{"a", "b", "c", "d", "e"}
	type place struct {
		seq  uint64
		data []byte
	}
	last := map[string]place{}
	kept := [][]byte{nil}
	for step := range 80 {
		id := ids[random.IntN(len(ids))]
		var data []byte
		switch random.IntN(7) {
		case 0, 1:
			data = j.record(id, false)
		case 2, 3:
			data = j.record(id, true)
		case 4:
			data = append(j.record(id, true), 0xf8, 0x3f, 0x01) // field 1023: of a newer version
		case 5:
			if _, err := j.js.Publish(t.Context(), "forge.journal.other."+id, j.record(id, true)); err != nil {
				t.Fatal(err)
			}
			data = j.record(id, false)
		default:
			data = []byte("garbage")
			if at := last[id]; at.seq > 0 {
				data = j.aside(id, at.seq, at.data)
			}
		}
		last[id] = place{j.store(id, data), data}
		i := random.IntN(len(kept))
		l := j.lists(fmt.Sprintf("step %d, from list %d", step, i), kept[i])
		if l.Whole && i > 0 {
			t.Errorf("step %d: list %d was not gone on from", step, i)
		}
		if l.Kept != nil {
			kept = append(kept, l.Kept)
		}
	}
	if len(kept) < 20 {
		t.Errorf("%d lists were kept", len(kept))
	}
	for i, list := range kept {
		j.lists(fmt.Sprintf("at the end, from list %d", i), list)
	}
}

// TestListOfAnother: a list of another stream, of one that has lost a message,
// of another project, or that is none, is not gone on from.
func TestListOfAnother(t *testing.T) {
	j := startJournals(t)
	if l := j.lists("where there is nothing", nil); l.Kept != nil || len(l.Summaries) != 0 {
		t.Errorf("%d intents of none, kept %d bytes", len(l.Summaries), len(l.Kept))
	}
	j.store("a", j.record("a", false))
	j.store("b", j.record("b", true))
	kept := j.lists("the first time", nil).Kept
	if l := j.lists("the second time", kept); l.Whole || l.Kept != nil {
		t.Errorf("nothing was stored since: whole %t, %d bytes to keep", l.Whole, len(l.Kept))
	}
	l, err := j.b.Journal.ListSince(t.Context(), "other", kept)
	if err != nil || len(l.Summaries) != 0 || !l.Whole {
		t.Errorf("another project: %d intents, whole: %t, %v", len(l.Summaries), l.Whole, err)
	}
	for i := range kept {
		j.lists("a part of a list", kept[:i])
	}
	j.store("c", j.record("c", true))
	in, err := j.js.Stream(t.Context(), "FORGE_JOURNAL")
	if err == nil {
		err = in.Purge(t.Context(), jetstream.WithPurgeSubject("forge.journal.shop.b"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if l := j.lists("beside a gap", kept); !l.Whole || len(l.Summaries) != 2 {
		t.Errorf("beside a gap: %d intents, whole: %t", len(l.Summaries), l.Whole)
	}
	j.s.DeleteStream(t, "FORGE_JOURNAL")
	j.b = j.s.Connect(t)
	j.store("c", j.record("c", false))
	j.store("b", j.record("b", true)) // byte for byte, and with the same sequence
	if l := j.lists("stored again", kept); !l.Whole || l.Summaries[1].Key.Intent != "c" {
		t.Errorf("stored again: whole: %t", l.Whole)
	}
}

// TestListFarBehind: where much has followed a list, every journal is read instead.
func TestListFarBehind(t *testing.T) {
	j := startJournals(t)
	j.store("a", j.record("a", false))
	kept := j.lists("the first time", nil).Kept
	for i := range 1001 {
		if _, err := j.js.PublishAsync("forge.journal.shop.b", fmt.Append(nil, "garbage ", i)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-j.js.PublishAsyncComplete():
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	j.store("b", j.record("b", false))
	if l := j.lists("far behind", kept); !l.Whole {
		t.Error("all that followed was read")
	}
}

// TestListOfAMoment: a list that was made while journals went on is not kept: a
// server that loses what it stored last has no other sign of it.
func TestListOfAMoment(t *testing.T) {
	j := startJournals(t)
	j.store("a", j.record("a", false))
	first := j.lists("the first time", nil).Kept
	then, err := journal.Newest(j.b.Journal, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j.store("b", j.record("b", false))
	for about, kept := range map[string][]byte{"whole": nil, "since": first} {
		l, err := journal.ListAsOf(j.b.Journal, t.Context(), "shop", then, kept)
		if err != nil || len(l.Summaries) != 2 || l.Kept != nil || l.Whole != (kept == nil) {
			t.Errorf("%s: %d intents, %d bytes to keep, whole: %t, %v", about, len(l.Summaries), len(l.Kept), l.Whole, err)
		}
	}
}
