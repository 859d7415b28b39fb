package sim

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// TestWishWorlds makes sure that the worlds in which people ask for changes
// have what they are for: plans and changes that are made again for that, some
// of them as often as may be, and wishes that are refused.
func TestWishWorlds(t *testing.T) {
	plans, changes, worlds, most := 0, 0, 0, 0
	for k := range uint64(40) {
		w := newWorld(32*k + []uint64{11, 23, 30}[k%3])
		w.populate()
		if err := w.play(); err != nil {
			t.Fatalf("seed %d: %v", w.seed, err)
		}
		worlds++
		for _, key := range w.keys {
			heard := 0
			for _, rec := range w.journal[key] {
				for _, ev := range rec.Events {
					if forge.As[*forge.RequestChanges](ev.Message) == nil {
						continue
					}
					if heard++; rec.Summary.Status == forge.StatusProposed {
						plans++
					} else {
						changes++
					}
				}
			}
			most = max(most, heard)
		}
	}
	if plans < worlds/4 || changes < worlds/8 || most < 10 {
		t.Errorf("in %d worlds %d plans and %d changes were made again for people, of one intent %d", worlds, plans, changes, most)
	}
}
