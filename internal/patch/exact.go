package patch

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/pfl-forge/pfl-forge/internal/patchid"
)

// headers are the lines that git prints before the hunks of a file, when it is not asked to look for renames.
var headers = [][]byte{
	[]byte("old mode "), []byte("new mode "), []byte("deleted file mode "), []byte("new file mode "), []byte("index "),
	[]byte("--- "), []byte("+++ "), []byte("Binary files "),
}

// exact returns an error if a text is not exactly what git prints of a change. The id of a change has every line in it, but neither the
// counts of hunks nor where they are: with a count that is too small, a line has its part in the id and belongs to no hunk, and whoever
// parses the text would not show it. So nothing may be between the hunks, and each has as many lines as it says.
func exact(text []byte) error {
	files, lines, before, after := 0, 0, 0, 0
	for n := 1; len(text) > 0; n++ {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		is := func(prefix string) bool { return bytes.HasPrefix(line, []byte(prefix)) }
		switch {
		case before > 0 || after > 0:
			switch {
			case is(" "):
				before, after = before-1, after-1
			case is("-"):
				before--
			case is("+"):
				after--
			case !is(`\`):
				return fmt.Errorf("line %d is none of a hunk", n)
			}
			if lines++; before < 0 || after < 0 {
				return fmt.Errorf("line %d is one more than its hunk has", n)
			}
		case bytes.HasPrefix(line, mark):
			files++
		case files > 0 && is("@@ -"):
			sides := bytes.Fields(line)
			if len(sides) < 4 || !bytes.Equal(sides[3], []byte("@@")) {
				return fmt.Errorf("line %d begins no hunk", n)
			}
			before, after = patchid.HunkCount(sides[1]), patchid.HunkCount(sides[2])
		case is(`\`) && lines > 0: // the hunk's last line has no end
		case files == 0 || !slices.ContainsFunc(headers, func(h []byte) bool { return bytes.HasPrefix(line, h) }):
			return fmt.Errorf("line %d is none that git prints", n)
		}
	}
	switch {
	case before > 0 || after > 0:
		return fmt.Errorf("its last hunk lacks %d lines", max(before, after))
	case lines > MaxLines || files > maxFiles:
		return fmt.Errorf("%d lines in %d files are more than are ever stored", lines, files)
	}
	return nil
}

// alike reports whether a deleted file and an added one have the same content, as far as the id of the change says so: that has the lines of
// text files, and the names of the objects of binary ones.
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
