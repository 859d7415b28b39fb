package patch

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/pfl-forge/pfl-forge/document"
)

// Files returns the files of a patch in their order, with all lines that there are. planned has
// the paths that a plan names, if it names any. Error: ErrDamaged.
func (p *Patch) Files(planned []string) ([]document.DiffFile, error) {
	found, list, err := p.plain()
	if err != nil {
		return nil, err
	}
	list = renamed(found, list)
	name(list, planned)
	return list, nil
}

// name says of each file whether it is among those that a plan names.
func name(list []document.DiffFile, planned []string) {
	if len(planned) == 0 {
		return
	}
	for i := range list {
		is := slices.Contains(planned, list[i].Path)
		list[i].Planned = &is
	}
}

// plain returns the files of a patch in their order, as the library has them and as readers get
// them. No file counts as renamed.
func (p *Patch) plain() (found []*gitdiff.File, list []document.DiffFile, err error) {
	if err := exact(p.Text); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	found, _, err = gitdiff.Parse(bytes.NewReader(p.Text))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	// What the library cannot make out it may pass over.
	if n := bytes.Count(p.Text, append([]byte("\n"), mark...)); len(p.Text) > 0 && (n+1 != len(found) || !bytes.HasPrefix(p.Text, mark)) {
		return nil, nil, fmt.Errorf("%w: %d of %d files can be read", ErrDamaged, len(found), n+1)
	}
	list = make([]document.DiffFile, len(found))
	for i, f := range found {
		list[i] = fileOf(f)
	}
	for _, c := range p.Cut {
		if c.File < 0 || c.File >= len(list) || len(list[c.File].Hunks) > 0 {
			return nil, nil, fmt.Errorf("%w: it has no file %d", ErrDamaged, c.File)
		}
		f := &list[c.File]
		f.Added, f.Deleted, f.Cut = c.Added, c.Deleted, fmt.Sprintf("its lines, %d bytes, are too many to be stored", c.Bytes)
		if c.Secret {
			f.Cut = "its lines have what looks like a secret, and are not stored"
		}
	}
	return found, list, nil
}

// fileOf returns a file of a patch.
func fileOf(f *gitdiff.File) document.DiffFile {
	d := document.DiffFile{Path: f.NewName, Status: "modified", OldMode: mode(f.OldMode), NewMode: mode(f.NewMode), Binary: f.IsBinary}
	switch {
	case f.IsNew:
		d.Status = "added"
	case f.IsDelete:
		d.Path, d.Status = f.OldName, "deleted"
	case len(f.TextFragments) == 0 && !f.IsBinary && f.NewMode != 0 && f.NewMode != f.OldMode:
		d.Status = "mode"
	}
	for _, t := range f.TextFragments {
		d.Added += int(t.LinesAdded)
		d.Deleted += int(t.LinesDeleted)
		d.Hunks = append(d.Hunks, hunkOf(t))
	}
	return d
}

// hunkOf returns a hunk with the numbers of its lines.
func hunkOf(t *gitdiff.TextFragment) document.DiffHunk {
	h := document.DiffHunk{
		OldStart: int(t.OldPosition), OldLines: int(t.OldLines), NewStart: int(t.NewPosition), NewLines: int(t.NewLines),
		Section: text(t.Comment), Lines: make([]document.DiffLine, len(t.Lines)),
	}
	before, after := h.OldStart, h.NewStart
	for i, l := range t.Lines {
		n := document.DiffLine{Op: l.Op.String(), Text: text(strings.TrimSuffix(l.Line, "\n")), NoEnd: !strings.HasSuffix(l.Line, "\n")}
		if l.Op != gitdiff.OpAdd {
			n.Old = before
			before++
		}
		if l.Op != gitdiff.OpDelete {
			n.New = after
			after++
		}
		h.Lines[i] = n
	}
	return h
}

// text returns a line as JSON can hold it: a file may have any bytes, and what is no text is
// shown as such.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// mode returns a mode as git writes it; empty if there is none. The library has it as git's
// number.
func mode(m fs.FileMode) string {
	if m == 0 {
		return ""
	}
	return fmt.Sprintf("%06o", uint32(m))
}

// kind is the part of a mode that tells files from links.
const kind = 0o170000

// renamed returns the files with each deletion and addition of the same content as one file
// that was renamed. The text has none: it is that of which the id is made. Contents that are
// only alike are told as they are.
func renamed(found []*gitdiff.File, list []document.DiffFile) []document.DiffFile {
	gone := map[string]int{} // by what the text says is the object; whether it is, is compared
	for i, f := range found {
		if f.IsDelete && f.OldOIDPrefix != "" {
			gone[f.OldOIDPrefix] = i
		}
	}
	drop := map[int]bool{}
	for i, f := range found {
		from, ok := gone[f.NewOIDPrefix]
		if !f.IsNew || !ok || drop[from] || found[from].OldMode&kind != f.NewMode&kind || !alike(found[from], f) {
			continue
		}
		drop[from] = true
		d := &list[i]
		*d = document.DiffFile{
			Path: d.Path, OldPath: list[from].Path, Status: "renamed", OldMode: list[from].OldMode, NewMode: d.NewMode, Binary: d.Binary,
		}
	}
	n := -1
	return slices.DeleteFunc(list, func(document.DiffFile) bool { n++; return drop[n] })
}
