package sim

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// TestWholeWorlds makes sure that the worlds that merge each intent as one
// change have what they are for: intents of which agents and architects planned
// several tasks, and pull requests of these.
func TestWholeWorlds(t *testing.T) {
	worlds, joined, opened := 0, 0, 0
	for _, base := range []uint64{0, 256} {
		for _, n := range []uint64{20, 23, 45, 115, 148, 151, 173, 227} {
			w := newWorld(base + n)
			w.populate()
			if w.money.whole == nil {
				t.Fatalf("seed %d merges task by task", base+n)
			}
			if err := w.play(); err != nil {
				t.Fatalf("seed %d: %v", base+n, err)
			}
			worlds++
			for _, key := range (checker{w}).intents() {
				for _, h := range w.view(key).History {
					for _, a := range h.Adjustments {
						if a.Rule == rule.Joined {
							joined++
						}
					}
				}
			}
			for _, rec := range w.journal[forge.Key{Project: project}] {
				for _, c := range rec.Effects.Commands {
					if c.Attempt.Step == forge.StepOpenPull {
						opened++
					}
				}
			}
		}
	}
	if joined < worlds || opened < worlds/2 {
		t.Errorf("in %d worlds %d plans were joined, and %d pull requests opened", worlds, joined, opened)
	}
}
