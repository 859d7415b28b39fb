package folds_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/folds"
)

// TestOf: output, usage and ends are folded behind the line before them, every
// line is there once, and each has its place on the page.
func TestOf(t *testing.T) {
	var lines []document.TranscriptLine
	for _, kind := range []string{"output", "output", "started", "text", "command", "output", "output", "command_ended", "usage", "tool"} {
		lines = append(lines, document.TranscriptLine{Kind: kind})
	}
	want := []int{2, 1, 1, 5, 1}
	n := 0
	blocks := folds.Of(lines)
	if len(blocks) != len(want) {
		t.Fatalf("%d blocks: %+v", len(blocks), blocks)
	}
	for i, b := range blocks {
		if len(b.Lines)+1 != want[i] {
			t.Errorf("block %d has %d lines, want %d", i, len(b.Lines)+1, want[i])
		}
		for _, l := range append([]folds.Line{b.Head}, b.Lines...) {
			if n++; l.N != n || l.Kind != lines[n-1].Kind {
				t.Errorf("line %d is %+v", n, l)
			}
		}
	}
}
