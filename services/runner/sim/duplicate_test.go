package sim

import (
	"reflect"
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
					if (n+i)%nth != 0 {
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
