package sim

import "testing"

// TestPublisherWorlds makes sure that the worlds in which publishers go on
// about an intent have what they are for: texts that are edited as often as is
// remembered, and comments beyond those that are told one by one.
func TestPublisherWorlds(t *testing.T) {
	texts, comments := 0, 0
	const worlds = 40
	for n := range uint64(worlds) {
		w := newWorld(32*n + 13)
		w.populate()
		if err := w.play(); err != nil {
			t.Fatalf("seed %d: %v", w.seed, err)
		}
		if w.publishers.Texts() == 20 {
			texts++
		}
		if w.publishers.Comments() > 20 {
			comments++
		}
	}
	if texts < worlds/8 || comments < worlds/8 {
		t.Errorf("of %d worlds %d have as many texts of an intent as are remembered, and %d more comments than are told one by one", worlds, texts, comments)
	}
}
