package runner_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// extendBy appends a record with an event to a journal, by a version of the
// rules, and returns what names it. Its summary says that it was decided now.
func extendBy(t *testing.T, b *bus.Bus, key forge.Key, by rules.Version, ev forge.Event) chain.Ref {
	t.Helper()
	records, head, err := b.Journal.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	ev.To, ev.At = key, time.Now().UTC()
	m := machine.Fold(key, records)
	eff, ruling := m.Step(by, ev)
	if ruling.Decision != forge.Applied {
		t.Fatalf("%s: %s", ruling.Decision, ruling.Reason)
	}
	rec := forge.Record{Events: []forge.Event{ev}, Effects: eff, Summary: m.Summary()}
	by.Stamp(&rec)
	if head, err = b.Journal.Append(t.Context(), key, head, rec); err != nil {
		t.Fatal(err)
	}
	ref, err := chain.NewRef(key, &head)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// setAside marks the last message of a journal as one that decides nothing, whatever it is.
func setAside(t *testing.T, b *bus.Bus, key forge.Key, ref chain.Ref) {
	t.Helper()
	at := journal.Trouble{Key: key, Seq: ref.Seq, Hash: ref.Hash, Reason: "it was tried", Loose: true}
	if err := b.Journal.SetAside(t.Context(), at, "ada", time.Now()); err != nil {
		t.Fatal(err)
	}
}

// TestMarksAreObeyed sets a message aside that this version understands, as it
// is after the upgrade that follows on a rollback: the older version went on
// without it, and so does everything that reads the journal.
func TestMarksAreObeyed(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	leaveOpen(t, b, "tried")
	key := forge.Key{Project: project, Intent: "tried"}
	before, _, err := b.Journal.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	ref := extendBy(t, b, key, rules.First, forge.Event{ID: "tried", Actor: "ada", Message: &forge.Pause{Reason: "tried"}})
	setAside(t, b, key, ref)

	records, head, err := b.Journal.Load(t.Context(), key)
	if err != nil || len(records) != len(before) || head.Broken != nil {
		t.Fatalf("%d records, want the %d from before; %v, %v", len(records), len(before), head.Broken, err)
	}
	if tail, err := b.Journal.After(t.Context(), key, ref.Seq); err != nil || tail.At.Seq != 0 {
		t.Errorf("one can go on from what is set aside: %+v, %v", tail.At, err)
	}
	if list, err := b.Journal.Troubles(t.Context(), key); err != nil || len(list) > 0 {
		t.Errorf("it holds the journal up: %+v, %v", list, err)
	}
	if view, err := runner.View(t.Context(), b, key); err != nil || view.Summary.Waiting == forge.WaitingPaused {
		t.Errorf("a view has it: %+v, %v", view.Summary, err)
	}
	all, err := b.Journal.Summaries(t.Context(), project)
	if err != nil || len(all) != 1 || all[0].Waiting != "" {
		t.Errorf("a list has it: %+v, %v", all, err)
	}
	var other []string
	err = b.Journal.Each(t.Context(), forge.Key{Project: project}, func(e *journal.Entry) error {
		if e.Key == key && e.Other != "" {
			other = append(other, e.Other)
		}
		return nil
	})
	if err != nil || len(other) != 2 || !strings.Contains(other[0], "ada has set it aside") {
		t.Errorf("an audit says of it: %q, %v", other, err)
	}
	if got := followed(t, b, key); len(got) != len(before) || slices.Contains(got, ref.Seq) {
		t.Errorf("who follows the journal is told of the messages %v, %d among them", got, ref.Seq)
	}
	start(t, s.Connect(t), 1)
	await(t, b, forge.StatusDone, "tried") // it is not paused
}

// followed returns the sequences of the records that one who follows the
// journals is told of from before the start.
func followed(t *testing.T, b *bus.Bus, key forge.Key) (list []uint64) {
	t.Helper()
	ctx, stop := context.WithCancel(wait.Context(t))
	defer stop()
	err := b.Journal.Follow(ctx, key.Project, 0, journal.Follower{
		Record: func(of forge.Key, seq uint64, _ forge.Record) error {
			if of == key {
				list = append(list, seq)
			}
			return nil
		},
		CaughtUp: func() error { stop(); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSnapshotOfWhatIsSetAside has a snapshot at a record that is set aside
// then: a start does not go on from it.
func TestSnapshotOfWhatIsSetAside(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	leaveOpen(t, b, "one")
	of := forge.Key{Project: project}
	ref := extendBy(t, b, of, rules.First, forge.Event{ID: "tried", Actor: "ada", Message: &forge.Pause{}})
	shelf := &onShelf{}
	d := machine.NewDriver(journalOf{b.Journal}, b.Effects, time.Now, 1)
	l, err := d.Load(t.Context(), of)
	if err != nil || l.Summary().Waiting != forge.WaitingPaused {
		t.Fatal(l, err)
	}
	d.Resume(shelf)
	if err := d.Keep(t.Context(), of, l); err != nil {
		t.Fatal(err)
	}
	setAside(t, b, of, ref)
	l, err = d.Load(t.Context(), of)
	if err != nil || l.Summary().Waiting == forge.WaitingPaused || l.Whole == "" {
		t.Errorf("the project is paused by what is set aside: %v, %v", l, err)
	}
}

// TestNewerRecordsAreHeard has a record of newer rules that names one of another journal,
// and has words of people: the other one is not offered to be set aside, since something
// was decided on it, and whoever sets this one aside is told whose words are lost.
func TestNewerRecordsAreHeard(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	leaveOpen(t, b, "one")
	key, of := forge.Key{Project: project, Intent: "one"}, forge.Key{Project: project}
	newer := rules.Newest + 1
	ref := extendBy(t, b, key, newer, forge.Event{ID: "said", Actor: "ada", Message: &forge.Pause{Reason: "no"}})
	extendBy(t, b, of, newer, forge.Event{ID: "heard", Actor: "bo", Message: &forge.Pause{}, Anchor: ref.String()})
	list, err := b.Journal.Troubles(t.Context(), key)
	if err != nil || len(list) != 1 || list[0].Loose {
		t.Errorf("the project has heard of it: %+v, %v", list, err)
	} else if !slices.Equal(list[0].Words, []string{"ada: pause"}) {
		t.Errorf("people said in it: %q", list[0].Words)
	}
	if list, err = b.Journal.Troubles(t.Context(), of); err != nil || len(list) != 1 || !list[0].Loose || len(list[0].Words) > 0 {
		t.Errorf("of the project: %+v, %v", list, err) // a machine said it, which says it again
	}
}
