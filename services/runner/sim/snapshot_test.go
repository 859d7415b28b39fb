package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
)

// TestSnapshotsChangeNothing replays the journals of projects. Before every event the
// project is written out and read back; the copy decides as the original did.
func TestSnapshotsChangeNothing(t *testing.T) {
	for seed := range uint64(testsize.Of(6, 60)) {
		w := newWorld(seed)
		w.populate()
		if err := w.play(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		key := forge.Key{Project: project}
		p := projects.New(key)
		for _, rec := range w.journal[key] {
			var eff forge.Effects
			for _, ev := range rec.Events {
				snapshot, err := p.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				if p, err = projects.Restore(key, snapshot); err != nil {
					t.Fatal(err)
				}
				e, ruling := p.Step(rules.Of(&rec), ev)
				if ruling.Decision != forge.Applied {
					t.Fatalf("seed %d: %s is %s: %s", seed, facts.Describe(ev), ruling.Decision, ruling.Reason)
				}
				machine.Merge(&eff, e)
			}
			if diff := cmp.Diff(rec.Effects, eff, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, effects (-journal +restored):\n%s", seed, diff)
			}
			if diff := cmp.Diff(rec.Summary, p.Summary()); diff != "" {
				t.Fatalf("seed %d, summary (-journal +restored):\n%s", seed, diff)
			}
		}
	}
}
