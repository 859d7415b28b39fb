package packed

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document/whole"
)

// noise returns a text that does not get smaller by being compressed.
func noise(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + r.IntN(64))
	}
	return string(b)
}

// TestRoom: the largest document that is packed fits into a message of the
// usual size with what is around it.
func TestRoom(t *testing.T) {
	data, err := json.Marshal(Packed{Gzip: make([]byte, room)})
	if err != nil || len(data) > 1<<20 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// TestPacked packs an intent with the records that are not known yet, and a
// list that has no room in one message: its pages have every intent.
func TestPacked(t *testing.T) {
	records := []forge.Record{{Summary: forge.Summary{Title: "one"}}, {Summary: forge.Summary{Title: "two"}}}
	p, err := Intent(&whole.Intent{Broken: "b"}, slices.Values(records), 1)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	text, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	d, err := whole.ParseIntent(text)
	if err != nil || d.Broken != "b" {
		t.Fatalf("%s: %v", text, err)
	}
	if got, err := Records(&d); err != nil || len(got) != 1 || got[0].Summary.Title != "two" {
		t.Errorf("%+v, %v", got, err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var all []forge.Summary
	for i := range 40 {
		all = append(all, forge.Summary{Key: forge.Key{Project: "p", Intent: forge.IntentID(fmt.Sprintf("i-%02d", i))}, Reason: noise(r, 64<<10)})
	}
	got, after := 0, forge.IntentID("")
	for pages := 0; ; pages++ {
		p, err := List(whole.ListOf(all, nil, after))
		if err != nil || len(p.Gzip) > room || pages > len(all) {
			t.Fatalf("%d bytes, %v", len(p.Gzip), err)
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		text, err := Open(data)
		if err != nil {
			t.Fatal(err)
		}
		l, err := whole.ParseList(text)
		if err != nil {
			t.Fatal(err)
		}
		got += len(l.Intents)
		if after = l.Next; after == "" {
			break
		}
	}
	if got != len(all) {
		t.Errorf("the pages have %d of %d", got, len(all))
	}
	if _, err := Intent(&whole.Intent{Broken: noise(r, 2<<20)}, slices.Values(records), 2); !errors.Is(err, ErrLarge) {
		t.Errorf("an intent without room: %v", err)
	}
}

// TestLongJournal: of a journal that is longer than an answer may be, no more records
// are asked for, encoded and kept than an answer has room for, however many there are.
func TestLongJournal(t *testing.T) {
	long := forge.Record{Summary: forge.Summary{Title: strings.Repeat("x", 1<<20)}}
	asked := 0
	journal := func(yield func(forge.Record) bool) {
		for range 1000 {
			if asked++; !yield(long) {
				return
			}
		}
	}
	d := &whole.Intent{}
	if _, err := Intent(d, journal, 3); !errors.Is(err, ErrLarge) {
		t.Errorf("it is packed: %v", err)
	}
	if most := 3 + whole.MaxBytes>>20; asked > most || len(d.Records) > asked-3 {
		t.Errorf("%d records were asked for and %d encoded, most %d", asked, len(d.Records), most)
	}
}
