package patch

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/pfl-forge/pfl-forge/document"
)

// around is how many lines that both patches have are shown beside one that only one has.
const around = 3

// Since compares the patch with a former one of the same task, and returns the files in which
// they differ, by their paths, and how many files are the same in both. planned is as in Files.
// Error: ErrDamaged.
//
// Every line of either patch that the other does not have is returned, whatever it is:
// a text is compared byte by byte, and what cannot be compared counts as different. On
// the same base a line that is added or deleted counts with its place in the file, and
// lines around it do not count; on another base the places mean nothing, so the lines
// around and the section of the hunk, such as the function, count in their stead: a
// line that moved to where these are equal is not told. A file that was renamed is one
// that was deleted and one that was added, because only so are all of its lines there.
func (p *Patch) Since(former *Patch, planned []string) (files []document.DiffFile, same int, err error) {
	now, err := p.sides()
	if err != nil {
		return nil, 0, err
	}
	before, err := former.sides()
	if err != nil {
		return nil, 0, fmt.Errorf("the former change: %w", err)
	}
	placed := p.Base == former.Base
	rest := map[string][]*side{}
	for _, s := range before {
		rest[s.file.Path] = append(rest[s.file.Path], s)
	}
	for _, s := range now {
		was := rest[s.file.Path]
		if len(was) == 0 {
			files = append(files, compare(s, nil, placed))
			continue
		}
		rest[s.file.Path] = was[1:]
		if f := compare(s, was[0], placed); f.Since != "" {
			files = append(files, f)
		} else {
			same++
		}
	}
	for _, s := range before {
		if slices.Contains(rest[s.file.Path], s) {
			files = append(files, compare(nil, s, placed))
		}
	}
	slices.SortStableFunc(files, func(a, b document.DiffFile) int { return cmp.Compare(a.Path, b.Path) })
	name(files, planned)
	return files, same, nil
}

// side is a file of one of two patches.
type side struct {
	file  document.DiffFile
	lines []compared
	// objects names the contents of a binary file, which the id of its patch covers.
	objects string
}

// compared is a line of a side. There are many, so it refers to what others have.
type compared struct {
	// text has the bytes of the line as they are.
	text string
	op   gitdiff.LineOp
	// hunk is the index of its hunk, place the line of the file before the change at which it
	// is.
	hunk, place int
	line        *document.DiffLine
}

// lineKey is equal for equal lines. The place, or the section of the hunk, tells lines with one
// text apart.
type lineKey struct {
	op      gitdiff.LineOp
	text    string
	place   int
	section string
}

// sides returns the files of a patch.
func (p *Patch) sides() ([]*side, error) {
	found, list, err := p.plain()
	if err != nil {
		return nil, err
	}
	all := make([]*side, len(list))
	for i := range list {
		s := &side{file: list[i]}
		if s.file.Binary {
			s.objects = found[i].OldOIDPrefix + " " + found[i].NewOIDPrefix
		}
		for h, t := range found[i].TextFragments {
			place := int(t.OldPosition)
			for n, l := range t.Lines {
				s.lines = append(s.lines, compared{text: l.Line, op: l.Op, hunk: h, place: place, line: &list[i].Hunks[h].Lines[n]})
				if l.Op != gitdiff.OpAdd {
					place++
				}
			}
		}
		all[i] = s
	}
	return all, nil
}

// compare returns the differences in a file of two patches, one of which may not have it. Its
// Since is empty if nothing is.
func compare(now, before *side, placed bool) document.DiffFile {
	switch {
	case before == nil:
		before = &side{}
		f := merge(now, before, placed)
		f.Since = "added"
		return f
	case now == nil:
		f := merge(&side{file: before.file}, before, placed)
		f.Since = "dropped"
		return f
	}
	f := merge(now, before, placed)
	a, b := &before.file, &now.file
	switch {
	case a.Cut != "" || b.Cut != "":
		f.Since = "unknown"
		f.Cut = "whether its lines are others is not known: " + cmp.Or(b.Cut, a.Cut)
	case a.Status != b.Status, a.OldMode != b.OldMode, a.NewMode != b.NewMode, a.Binary != b.Binary, now.objects != before.objects, f.Added+f.Deleted > 0:
		f.Since = "changed"
	}
	if f.Since != "" && (a.Status != b.Status || a.OldMode != b.OldMode || a.NewMode != b.NewMode || a.Binary != b.Binary) {
		f.Was = &document.DiffWas{Status: a.Status, OldMode: a.OldMode, NewMode: a.NewMode, Binary: a.Binary}
	}
	return f
}

// merge returns the lines of both sides as those of one file, each once: lines of the newer
// side in their order, and before them those that were dropped there.
func merge(now, before *side, placed bool) document.DiffFile {
	m := merger{file: now.file, now: now, before: before, last: -1}
	if m.file.Hunks = nil; m.file.Cut == "" {
		m.file.Added, m.file.Deleted = 0, 0
	}
	counts := func(c *compared) bool { return !placed || c.line.Op != " " }
	old, oldAt := before.keys(counts, placed)
	own, ownAt := now.keys(counts, placed)
	partner := make([]int, len(now.lines)) // by the newer line; -1 for none
	taken := make([]bool, len(before.lines))
	for i := range partner {
		partner[i] = -1
	}
	for _, pair := range align(old, own) {
		partner[ownAt[pair[1]]], taken[oldAt[pair[0]]] = oldAt[pair[0]], true
	}
	i := 0
	for j := range now.lines {
		n := &now.lines[j]
		for ; i < len(before.lines) && !taken[i] && (partner[j] > i || placed && before.lines[i].place <= n.place); i++ {
			m.dropped(i, j, counts)
		}
		if partner[j] >= 0 {
			i = partner[j] + 1
		}
		m.kept(j, partner[j] < 0 && counts(n))
	}
	for ; i < len(before.lines); i++ {
		m.dropped(i, len(now.lines), counts)
	}
	m.file.Hunks = shorten(m.file.Hunks, func(l *document.DiffLine) bool { return l.Since != "" })
	return m.file
}

// keys returns the keys of the lines that count, and the index of each. Placed ones have their
// place, others the section of their hunk.
func (s *side) keys(counts func(*compared) bool, placed bool) (list []lineKey, at []int) {
	for i := range s.lines {
		c := &s.lines[i]
		if !counts(c) {
			continue
		}
		key := lineKey{op: c.op, text: c.text}
		if placed {
			key.place = c.place
		} else {
			key.section = s.file.Hunks[c.hunk].Section
		}
		list, at = append(list, key), append(at, i)
	}
	return list, at
}

// merger puts the lines of two sides together.
type merger struct {
	file        document.DiffFile
	now, before *side
	// last is the hunk of the newer side that the last hunk is; for one of the former side it
	// is below -1.
	last int
}

// kept takes a line of the newer side.
func (m *merger) kept(j int, isNew bool) {
	n := &m.now.lines[j]
	m.open(n.hunk, &m.now.file.Hunks[n.hunk])
	l := *n.line
	if isNew {
		l.Since = "added"
		m.file.Added++
	}
	m.take(l)
}

// dropped takes a line of the former side that the newer one has not, before a line of that.
// Inside a hunk of the newer side it stands there, or else in its own.
func (m *merger) dropped(i, next int, counts func(*compared) bool) {
	b := &m.before.lines[i]
	if !counts(b) {
		return
	}
	inside := m.last >= 0 && next < len(m.now.lines) && m.now.lines[next].hunk == m.last
	if !inside {
		m.open(-2-b.hunk, &m.before.file.Hunks[b.hunk])
	}
	l := *b.line
	l.Since = "dropped"
	m.file.Deleted++
	m.take(l)
}

// open begins a hunk, unless it is the last one.
func (m *merger) open(id int, h *document.DiffHunk) {
	if m.last != id {
		begun := *h
		begun.Lines = nil
		m.file.Hunks = append(m.file.Hunks, begun)
		m.last = id
	}
}

// take appends a line to the last hunk.
func (m *merger) take(l document.DiffLine) {
	h := &m.file.Hunks[len(m.file.Hunks)-1]
	h.Lines = append(h.Lines, l)
}

// shorten leaves out lines that are not told, but for those around the others. What is left
// of a hunk may be several runs.
func shorten(hunks []document.DiffHunk, shown func(*document.DiffLine) bool) (list []document.DiffHunk) {
	for _, h := range hunks {
		end := 0 // of the last run
		for i := range h.Lines {
			if !shown(&h.Lines[i]) {
				continue
			}
			from, to := max(i-around, end), min(i+1+around, len(h.Lines))
			if n := len(list) - 1; end > 0 && from == end {
				list[n].Lines = append(list[n].Lines, h.Lines[from:to]...)
			} else {
				run := h
				run.Lines = slices.Clone(h.Lines[from:to])
				list = append(list, run)
			}
			end = to
		}
	}
	return list
}

// align returns pairs of indexes of equal keys, both ascending. It takes n log n steps for n
// keys, and finds as much as can be told from keys that are in both once, and from what lies
// beside those: not always the most that could be found.
func align(a, b []lineKey) (pairs [][2]int) {
	anchors := append(ascending(unique(a, b)), [2]int{len(a), len(b)})
	i, j := 0, 0
	for _, next := range anchors {
		for i < next[0] && j < next[1] && a[i] == b[j] {
			pairs = append(pairs, [2]int{i, j})
			i++
			j++
		}
		var back [][2]int
		x, y := next[0], next[1]
		for x > i && y > j && a[x-1] == b[y-1] {
			x--
			y--
			back = append(back, [2]int{x, y})
		}
		slices.Reverse(back)
		pairs = append(pairs, back...)
		if next[0] < len(a) {
			pairs = append(pairs, next)
		}
		i, j = next[0]+1, next[1]+1
	}
	return pairs
}

// unique returns the pairs of keys that are in each list once, by their places in the first.
func unique(a, b []lineKey) (pairs [][2]int) {
	count, in := map[lineKey]int{}, map[lineKey]int{}
	for _, k := range a {
		count[k]++
	}
	for j, k := range b {
		count[k] += 1 << 32
		in[k] = j
	}
	for i, k := range a {
		if count[k] == 1<<32+1 {
			pairs = append(pairs, [2]int{i, in[k]})
		}
	}
	return pairs
}

// ascending returns a longest part of pairs, which ascend by the first index, that ascends by
// the second one as well.
func ascending(pairs [][2]int) [][2]int {
	ends := []int{}                   // by length, the pair that ends the part with the smallest second index
	before := make([]int, len(pairs)) // the pair before each in its part
	for i, p := range pairs {
		at, _ := slices.BinarySearchFunc(ends, p[1], func(e, second int) int { return cmp.Compare(pairs[e][1], second) })
		if before[i] = -1; at > 0 {
			before[i] = ends[at-1]
		}
		if at == len(ends) {
			ends = append(ends, i)
		} else {
			ends[at] = i
		}
	}
	var list [][2]int
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = before[i] {
			list = append(list, pairs[i])
		}
	}
	slices.Reverse(list)
	return list
}
