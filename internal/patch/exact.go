package patch

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/pfl-forge/pfl-forge/internal/patchid"
)

// headers are the lines that git prints before the hunks of a file, when it is
// not asked to look for renames.
var headers = [][]byte{
	[]byte("old mode "), []byte("new mode "), []byte("deleted file mode "), []byte("new file mode "), []byte("index "),
	[]byte("--- "), []byte("+++ "), []byte("Binary files "),
}

// exact returns an error if a text is not exactly what git prints of a change. The id of a change
// has every line in it, but neither the counts of hunks nor where they are: with a count that is
// too small, a line has its part in the id and belongs to no hunk, and whoever parses the text
// would not show it. So nothing may be between the hunks, and each has as many lines as it says.
func exact(text []byte) error {
	var w walk
	for n := 1; len(text) > 0; n++ {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		if !w.line(line) {
			return fmt.Errorf("line %d is none that git prints there", n)
		}
	}
	switch {
	case w.inHunk():
		return fmt.Errorf("its last hunk lacks %d lines", max(w.before, w.after))
	case w.lines > MaxLines || w.files > maxFiles:
		return fmt.Errorf("%d lines in %d files are more than are ever stored", w.lines, w.files)
	}
	return nil
}

// walk is a place in a text: outside of hunks, where the beginning of a line says of
// what kind it is, or in one, where each is content although it may look like a header.
type walk struct {
	// files and lines count the files so far, and the lines of all of their hunks.
	files, lines int
	// before and after are the lines that the hunk still has of either side.
	before, after int
}

// inHunk reports whether the next line is one of a hunk.
func (w *walk) inHunk() bool { return w.before > 0 || w.after > 0 }

// line takes a line, and returns false for one that cannot be there. Nothing may be before
// the first file, and nothing but the next hunk or file behind a hunk that is complete.
func (w *walk) line(l []byte) bool {
	is := func(prefix string) bool { return bytes.HasPrefix(l, []byte(prefix)) }
	switch {
	case w.inHunk():
		return w.content(l)
	case bytes.HasPrefix(l, mark):
		w.files++
		return true
	case w.files == 0:
		return false
	case is("@@ -"):
		sides := bytes.Fields(l)
		if len(sides) < 4 || !bytes.Equal(sides[3], []byte("@@")) {
			return false
		}
		w.before, w.after = patchid.HunkCount(sides[1]), patchid.HunkCount(sides[2])
		return true
	case is(`\`): // the hunk's last line has no end
		return w.lines > 0
	}
	return slices.ContainsFunc(headers, func(h []byte) bool { return bytes.HasPrefix(l, h) })
}

// content takes a line of a hunk, and returns false for one that its hunk does not say to have.
func (w *walk) content(l []byte) bool {
	w.lines++
	switch {
	case len(l) == 0:
		return false
	case l[0] == ' ':
		w.before, w.after = w.before-1, w.after-1
	case l[0] == '-':
		w.before--
	case l[0] == '+':
		w.after--
	default:
		return l[0] == '\\'
	}
	return w.before >= 0 && w.after >= 0
}

// alike reports whether a deleted file and an added one have the same content,
// as far as the id of the change says so: that has the lines of text files, and
// the names of the objects of binary ones.
func alike(gone, come *gitdiff.File) bool {
	if gone.IsBinary || come.IsBinary {
		return gone.IsBinary && come.IsBinary && gone.OldOIDPrefix != "" && gone.OldOIDPrefix == come.NewOIDPrefix
	}
	content := func(f *gitdiff.File) (lines []string) {
		for _, t := range f.TextFragments {
			for _, l := range t.Lines {
				lines = append(lines, l.Line)
			}
		}
		return lines
	}
	was := content(gone)
	return len(was) > 0 && slices.Equal(was, content(come))
}
