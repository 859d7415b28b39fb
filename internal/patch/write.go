package patch

import (
	"bytes"
	"fmt"
)

const (
	// MaxWhole bounds the text of a stored patch, in bytes before it is compressed.
	MaxWhole = 8 << 20
	// MaxFile bounds that of one file.
	MaxFile = 1 << 20
	// MaxLines bounds the lines of all hunks: read, each takes about 200 bytes of the memory of
	// a runner, however short it is.
	MaxLines = 100_000
	// maxFiles bounds the files of a stored patch, and maxCut those of them that are there
	// without their lines.
	maxFiles, maxCut = 10_000, 1000
)

// Cut says of a file in a stored patch that its lines are not there.
type Cut struct {
	File    int `json:"file"` // its index in the patch
	Added   int `json:"added"`
	Deleted int `json:"deleted"`
	Bytes   int `json:"bytes"` // of the lines that are left out
	// Secret says that a secret seems to be in them; otherwise they are too many.
	Secret bool `json:"secret,omitempty"`
}

// Writer takes the text of a patch and keeps as much of it as may be stored. A file is kept
// with all its lines or none: a part of a change could be taken for the change.
type Writer struct {
	// Secret, if not nil, reports whether a text has a secret: a file that has one is kept
	// without its lines.
	Secret func(text string) bool

	// text has the files that have ended; file is the one that has not, header its length
	// without the lines.
	text, file bytes.Buffer
	header     int
	now        Cut
	// started says that file is one, and lines that its lines have begun; over, that they are
	// too many.
	started, lines, over bool
	// inLine says that the next byte is inside a line; rest is a beginning of one that is too
	// short to tell what it is.
	inLine bool
	rest   []byte

	files int
	// kept counts the lines of the hunks of all files in text, and count those of file.
	kept, count int

	cut     []Cut
	leftOut int
}

// mark begins each file of a patch. A line of content begins with a space, a sign or a
// backslash.
var mark = []byte("diff --git ")

// Write takes a part of a patch, which ends anywhere. It never fails: too much is left out.
func (w *Writer) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		piece := b
		if end > 0 {
			piece = b[:end]
		}
		b = b[len(piece):]
		piece = append(w.rest, piece...)
		w.rest = nil
		if end == 0 && !w.inLine && len(piece) < len(mark) {
			w.rest = bytes.Clone(piece)
			return n, nil
		}
		w.piece(piece)
		w.inLine = end == 0
	}
	return n, nil
}

// piece takes a line or a part of one.
func (w *Writer) piece(p []byte) {
	if !w.inLine {
		w.start(p)
	}
	if w.lines {
		w.now.Bytes += len(p)
		if w.over {
			return
		}
	}
	w.file.Write(p)
	if w.file.Len() > MaxFile || w.text.Len()+w.file.Len() > MaxWhole || w.kept+w.count > MaxLines {
		w.over = true
		if w.lines {
			w.file.Truncate(w.header)
		}
	}
}

// start looks at the beginning of a line.
func (w *Writer) start(p []byte) {
	if w.lines {
		w.count++
	}
	switch {
	case bytes.HasPrefix(p, mark):
		w.end()
		w.started = true
	case !w.lines && bytes.HasPrefix(p, []byte("@@ -")):
		w.lines, w.header = true, w.file.Len()
	case w.lines && p[0] == '+':
		w.now.Added++
	case w.lines && p[0] == '-':
		w.now.Deleted++
	}
}

// end takes the file that was written last into the text.
func (w *Writer) end() {
	if !w.started {
		return
	}
	if w.Secret != nil && w.lines && !w.over && w.Secret(w.file.String()) {
		w.over, w.now.Secret = true, true
		w.file.Truncate(w.header)
	}
	switch {
	case w.files == maxFiles, w.over && (len(w.cut) == maxCut || w.text.Len()+w.file.Len() > MaxWhole+MaxFile):
		w.leftOut++
	default:
		if w.over {
			w.now.File = w.files
			w.cut = append(w.cut, w.now)
		} else {
			w.kept += w.count
		}
		w.text.Write(w.file.Bytes())
		w.files++
	}
	w.file.Reset()
	w.now, w.header, w.count, w.started, w.lines, w.over = Cut{}, 0, 0, false, false, false
}

// Patch returns the part of the change that was kept, whose commits and id are not known here.
// Nothing is to be written afterwards.
func (w *Writer) Patch() *Patch {
	if len(w.rest) > 0 {
		w.piece(w.rest)
	}
	w.end()
	return &Patch{About: About{Cut: w.cut, LeftOut: w.leftOut}, Text: bytes.Clone(w.text.Bytes())}
}

// String says how much was kept, for a log.
func (a *About) String() string {
	return fmt.Sprintf("%d files without their lines, %d left out", len(a.Cut), a.LeftOut)
}
