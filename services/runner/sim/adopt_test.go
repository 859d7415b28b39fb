package sim

import "testing"

// TestAdoptingWorlds makes sure that the worlds in which people adopt what they
// pushed have what they are for: commits that take the place of others, also
// twice, and words about others that lead to nothing.
func TestAdoptingWorlds(t *testing.T) {
	worlds, words, replaced, again := 0, 0, 0, 0
	for seed := uint64(83); seed < 128*40; seed += 16 {
		w := newWorld(seed)
		w.populate()
		if !w.outside.Adopts() {
			continue
		}
		if err := w.play(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		worlds++
		words, replaced, again = words+w.outside.Words, replaced+w.outside.Replaced, again+w.outside.Again
	}
	if words < worlds || replaced < worlds/2 || replaced == words || again < worlds/60 {
		t.Errorf("in %d worlds people adopted %d commits, %d were replaced, %d of them again", worlds, words, replaced, again)
	}
}
