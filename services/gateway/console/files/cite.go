package files

import (
	"slices"
	"strconv"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// lines matches the form in which a reviewer cites lines: path:line or
// path:from-to. The path may have colons.
var lines = pattern.New(`^(.+):L?([0-9]{1,7})(?:-L?([0-9]{1,7}))?$`)

// Place is where a piece of evidence stands in a change.
type Place struct {
	// Address leads to the first line that is cited, or to the file where that
	// line is not on the page; empty where it leads nowhere.
	Address string
	// Exact says that Address leads to all that is cited, and not only to the
	// file in which it stands.
	Exact bool
	// Outside says that the change does not touch the file which is cited, as
	// far as all names of its files are known.
	Outside bool
}

// Place returns where evidence about a commit stands in the change that is
// shown; v may be nil. The numbers of lines are those of the commit: where the
// page shows another one, such as a former attempt, it leads to the file alone.
func (v *View) Place(head string, c document.Citation) (p Place) {
	path, from, to := cited(c)
	if v == nil || path == "" {
		return p
	}
	same := v.Since == nil && v.Head == head
	i := slices.IndexFunc(v.Names, func(n Name) bool { return n.Path == path || n.OldPath == path })
	if i < 0 {
		p.Outside = same && c.Kind != forge.CitationAbsence && v.LeftOut == 0 && len(v.Names) == v.FileCount
		return p
	}
	name := &v.Names[i]
	p.Exact = from == 0
	if shown := slices.IndexFunc(v.Files, func(f document.DiffFile) bool { return f.Path == name.Path }); shown >= 0 {
		p.Address = "#" + name.ID
		f := &v.Files[shown]
		if line := find(f, from, to, removed(c)); same && line != "" {
			return Place{Address: p.Address + line, Exact: true}
		}
		if f.From == 0 {
			return p
		}
	}
	p.Address = strings.TrimSuffix(name.Address, fragment) + "#" + name.ID
	return p
}

// Anchor returns the id of a file on the page; empty of one that is not among its names.
func (v *View) Anchor(f document.DiffFile) string {
	if i := slices.IndexFunc(v.Names, func(n Name) bool { return n.Path == f.Path }); i >= 0 {
		return v.Names[i].ID
	}
	return ""
}

// At returns the part of the id of a line that follows the file's: n and its
// number after the change, or o and that before of a line which is gone.
func At(l document.DiffLine) string {
	if l.New > 0 {
		return "n" + strconv.Itoa(l.New)
	}
	return "o" + strconv.Itoa(l.Old)
}

// find returns At of the first line of a file in a range of lines that is on
// the page; empty if none is.
func find(f *document.DiffFile, from, to int, old bool) string {
	for i := range f.Hunks {
		for _, l := range f.Hunks[i].Lines {
			if n := l.New; !old && n >= from && n <= to && n > 0 {
				return At(l)
			}
			if old && l.New == 0 && l.Old >= from && l.Old <= to {
				return At(l)
			}
		}
	}
	return ""
}

// cited returns the file and the lines that a piece of evidence names; from and
// to are 0 where it names no lines, and path is empty where it names no file.
// Of one line with a quote, the lines are as many as the quote has.
func cited(c document.Citation) (path string, from, to int) {
	if c.Kind == forge.CitationCommand {
		return "", 0, 0
	}
	ref := strings.TrimSpace(c.Ref)
	m := lines.FindStringSubmatch(ref)
	if m == nil || c.Kind == forge.CitationAbsence {
		return ref, 0, 0
	}
	from, _ = strconv.Atoi(m[2]) // at most seven digits
	if to, _ = strconv.Atoi(m[3]); to == 0 {
		to = from + strings.Count(strings.TrimSpace(c.Quote), "\n")
	}
	return m[1], from, to
}

// removed reports whether what is cited are lines that the change takes away:
// each of the quote is marked so.
func removed(c document.Citation) bool {
	if c.Kind != forge.CitationDiff {
		return false
	}
	for line := range strings.SplitSeq(strings.TrimSpace(c.Quote), "\n") {
		if !strings.HasPrefix(line, "-") {
			return false
		}
	}
	return true
}
