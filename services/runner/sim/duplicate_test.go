package sim

import (
	"reflect"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
)

// TestDuplicatesChangeNothing tells machines again what they were told before,
// at every point of many journals.
func TestDuplicatesChangeNothing(t *testing.T) {
	nth := testsize.Of(20, 1) // of the pairs of a message and a later moment, which are very many
	for seed := range uint64(testsize.Of(2, 60)) {
		w := newWorld(seed)
		w.populate()
		if err := w.play(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, key := range w.keys {
			var told []forge.Event
			for n, rec := range w.journal[key] {
				told = append(told, rec.Events...)
				m, same := machine.Fold(key, w.journal[key][:n+1]), machine.Fold(key, w.journal[key][:n+1])
				for i, again := range told {
					if (n+i)%nth != 0 || saidOtherwise(told[i:]) {
						continue
					}
					again.At = told[len(told)-1].At
					if _, ruling := m.Step(m.Rules(), again); ruling.Decision == forge.Applied {
						t.Fatalf("seed %d: %s, record %d: %s is applied twice", seed, key, n, facts.Describe(again))
					}
					if reflect.DeepEqual(m, same) {
						continue
					}
					if !key.IsProject() {
						t.Fatalf("seed %d: %s, record %d: %s changes the state although it is not applied", seed, key, n, facts.Describe(again))
					}
					m = machine.Fold(key, w.journal[key][:n+1])
				}
			}
		}
	}
}

// saidOtherwise reports whether the first of the events is a submission after which another one
// gave another text. That one may be said again: it is the word of a publisher who edits the text
// back, and no field of it tells that from a late repetition.
func saidOtherwise(told []forge.Event) bool {
	first, ok := told[0].Message.(*forge.Submit)
	return ok && first.Comments == nil && slices.ContainsFunc(told[1:], func(ev forge.Event) bool {
		later, ok := ev.Message.(*forge.Submit)
		return ok && later.Comments == nil && (later.Intent.Title != first.Intent.Title || later.Intent.Body != first.Intent.Body)
	})
}
