package transcript

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// maxTail bounds the lines that are kept for the end of an attempt that tells too much.
const maxTail = 1 << 20

// tail is the newest lines of an attempt that tells too much: how it ends is what people
// look for.
type tail struct {
	lines   [][]byte
	size    int
	leftOut int // lines before these
}

func (t *tail) add(line []byte) {
	t.lines = append(t.lines, line)
	t.size += len(line)
	for t.size > maxTail {
		t.size -= len(t.lines[0])
		t.lines = t.lines[1:]
		t.leftOut++
	}
}

// text returns the lines; if some before them are left out, the first says so, in the
// place of l.
func (t *tail) text(l Line) []byte {
	lines := slices.Concat(t.lines...)
	if t.leftOut == 0 {
		return lines
	}
	l.Kind, l.Usage = forge.ProgressText, nil
	l.Text = fmt.Sprintf("%d lines before this one are left out: this is more than %d MiB", t.leftOut, MaxBytes>>20)
	return append(l.encode(), lines...)
}
