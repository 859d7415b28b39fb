package patch

import (
	"strings"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/pfl-forge/pfl-forge/document"
)

// LeaveOutSpace leaves out of the files of a change the lines that it changes
// in white space alone, and returns how many these are of all files; each file
// has its own count. What is left of a hunk may be several runs, or none.
//
// A deleted line and an added one that comes in its place are such lines if they are
// equal without blanks and tabs at their ends and with each run of them inside taken
// for one blank. So an indent does not matter, nor an end of a line by CR, while "no
// way" never becomes "noway". Every other character counts, whatever it looks like:
// a blank that is none, or one that cannot be seen, is never left out, and neither
// is a line with bytes that are no text, which may look the same and be another one.
func LeaveOutSpace(files []document.DiffFile) (hidden int) {
	for i := range files {
		f := &files[i]
		for n := range f.Hunks {
			lines, left := unspaced(f.Hunks[n].Lines)
			f.Hunks[n].Lines = lines
			f.Hidden += left
		}
		if f.Hidden == 0 {
			continue
		}
		hidden += f.Hidden
		f.Hunks = shorten(f.Hunks, func(l *document.DiffLine) bool { return l.Op != " " })
		for n := range f.Hunks {
			measure(&f.Hunks[n])
		}
	}
	return hidden
}

// unspaced returns the lines of a hunk, of which those that are changed in white space alone
// stay as they are after the change, and how many lines of the change are not told by that.
func unspaced(lines []document.DiffLine) (kept []document.DiffLine, hidden int) {
	for from := 0; from < len(lines); {
		if lines[from].Op == " " {
			kept = append(kept, lines[from])
			from++
			continue
		}
		var gone, come []document.DiffLine
		to := from
		for ; to < len(lines) && lines[to].Op != " "; to++ {
			if lines[to].Op == "-" {
				gone = append(gone, lines[to])
			} else {
				come = append(come, lines[to])
			}
		}
		from = to
		i, j := 0, 0
		for _, pair := range align(spaceKeys(gone), spaceKeys(come)) {
			kept = append(append(kept, gone[i:pair[0]]...), come[j:pair[1]]...)
			same := come[pair[1]]
			same.Op, same.Old = " ", gone[pair[0]].Old
			kept = append(kept, same)
			hidden += 2
			i, j = pair[0]+1, pair[1]+1
		}
		kept = append(append(kept, gone[i:]...), come[j:]...)
	}
	return kept, hidden
}

// spaceKeys returns a key for each line, which lines of both sides have in
// common if they differ in white space alone.
func spaceKeys(lines []document.DiffLine) []lineKey {
	list := make([]lineKey, len(lines))
	for i := range lines {
		l := &lines[i]
		if strings.ContainsRune(l.Text, utf8.RuneError) {
			list[i] = lineKey{op: gitdiff.OpAdd, text: l.Text, place: i}
			if l.Op == "-" {
				list[i].op = gitdiff.OpDelete
			}
			continue
		}
		words := strings.FieldsFunc(strings.TrimRight(l.Text, " \t\r"), func(r rune) bool { return r == ' ' || r == '\t' })
		list[i] = lineKey{text: strings.Join(words, " ")}
		if l.NoEnd {
			list[i].section = "no end"
		}
	}
	return list
}

// measure sets where a run of lines is. A side without lines stays where its hunk is.
func measure(h *document.DiffHunk) {
	h.OldLines, h.NewLines = 0, 0
	for i := range h.Lines {
		l := &h.Lines[i]
		if l.Op != "+" {
			if h.OldLines++; h.OldLines == 1 {
				h.OldStart = l.Old
			}
		}
		if l.Op != "-" {
			if h.NewLines++; h.NewLines == 1 {
				h.NewStart = l.New
			}
		}
	}
}
