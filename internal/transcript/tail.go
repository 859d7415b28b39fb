package transcript

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// maxTail bounds the last lines that are kept of an attempt that prints too
// much, in bytes.
const maxTail = 1 << 20

// tail holds the newest lines of an attempt that prints more than MaxBytes,
// until the attempt ends and they are stored. People look at the end of a
// transcript first, so it is kept. A tail is used under the lock of its Writer.
type tail struct {
	// lines are encoded, with their line ends, the oldest one first.
	lines [][]byte
	// size is the length of the lines together.
	size int
	// leftOut counts the lines that were dropped before these.
	leftOut int
}

// add appends a line and drops the oldest ones until the rest fits into
// maxTail.
func (t *tail) add(line []byte) {
	t.lines = append(t.lines, line)
	t.size += len(line)
	for t.size > maxTail {
		t.size -= len(t.lines[0])
		t.lines = t.lines[1:]
		t.leftOut++
	}
}

// text returns the lines. If some were dropped before them, the first one says so; it has the
// time and place of l.
func (t *tail) text(l Line) []byte {
	lines := slices.Concat(t.lines...)
	if t.leftOut == 0 {
		return lines
	}
	l.Kind, l.Usage = forge.ProgressText, nil
	l.Text = fmt.Sprintf("%d lines before this one are left out: this is more than %d MiB", t.leftOut, MaxBytes>>20)
	return append(l.encode(), lines...)
}
