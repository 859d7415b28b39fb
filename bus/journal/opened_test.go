package journal_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
)

// countedOf returns those of intents that have not ended, or of all, in the order of their keys.
func countedOf(all []journal.Counted, ended bool) []journal.Counted {
	list := slices.DeleteFunc(all, func(s journal.Counted) bool { return s.Key.IsProject() || !ended && s.Status.Ended() })
	slices.SortFunc(list, func(a, b journal.Counted) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	return list
}

// TestOpened: whoever counts intents again and again, from any list or from none,
// counts what one counts who reads every journal, whatever was stored since:
// records, garbage, records of a newer version, and marks that set something aside.
func TestOpened(t *testing.T) {
	j := startJournals(t)
	ctx := t.Context()
	random := rand.New(rand.NewPCG(5, 6))
	last := map[string]place{}
	var list journal.Open
	opened := []*journal.Opened{j.b.Journal.NewOpened(list)}
	kept := j.b.Journal.NewOverview()
	for step := range 80 {
		j.happens(random, last)
		if step%10 == 9 {
			list, _ = j.open(list)
			opened = append(opened, j.b.Journal.NewOpened(list))
		}
		all := j.b.Journal.NewOverview()
		for _, o := range []*journal.Overview{all, kept} {
			if err := o.Refresh(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if diff := gocmp.Diff(countedOf(all.All(), true), countedOf(kept.All(), true)); diff != "" {
			t.Fatalf("step %d: the overview of all, and the one that goes on:\n%s", step, diff)
		}
		one := opened[random.IntN(len(opened))]
		if err := one.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(countedOf(all.All(), false), countedOf(one.All(), false)); diff != "" {
			t.Fatalf("step %d: open of all, and as they are counted:\n%s", step, diff)
		}
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "nobody"} {
		key := forge.Key{Project: "shop", Intent: forge.IntentID(id)}
		_, want := last[id]
		if knows, err := j.b.Journal.Knows(ctx, key); err != nil || knows != want {
			t.Errorf("%s is known: %t, %v", id, knows, err)
		}
	}
}

// TestOpenedSees: what has begun since the look before is seen by the next one, once.
func TestOpenedSees(t *testing.T) {
	j := startJournals(t)
	o := j.b.Journal.NewOpened(journal.Open{})
	for _, id := range []string{"a", "b", "c"} {
		j.store(id, j.record(id, id == "b"))
		if err := o.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"a", "b", "c"} {
			if seen := o.Seen(forge.Key{Project: "shop", Intent: forge.IntentID(other)}); seen != (other == id) {
				t.Errorf("after %s was stored, %s is seen: %t", id, other, seen)
			}
		}
	}
}

// TestOverviewAsksForNoNames: once it has read all, an overview reads what the
// journals have since, and asks for nothing that is as long as the list of all.
func TestOverviewAsksForNoNames(t *testing.T) {
	j := startJournals(t)
	o := j.b.Journal.NewOverview()
	j.store("ended", j.record("ended", true))
	if err := o.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(j.s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	var mu sync.Mutex
	var asked []string
	if _, err := nc.Subscribe("$JS.API.>", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, m.Subject+" "+string(m.Data))
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	j.store("a", j.record("a", false))
	if err := o.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := o.All(); len(all) != 2 {
		t.Errorf("%+v", all)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, line := range asked {
		if strings.Contains(line, `"subjects_filter":"forge.journal.*.*"`) || strings.Contains(line, "forge.journal.shop.ended") {
			t.Errorf("it asks for %.300s", line)
		}
	}
	if len(asked) == 0 {
		t.Error("it asks for nothing")
	}
}
