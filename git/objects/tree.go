package objects

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// treeEntry is an entry of a tree object, without its name. The mode is octal,
// as trees have it: 40000 for a directory. The zero value stands for no entry.
type treeEntry struct{ mode, oid string }

func (e treeEntry) isTree() bool { return strings.TrimLeft(e.mode, "0") == "40000" }

func (e treeEntry) isFile() bool { return strings.HasPrefix(e.mode, "100") }

func (e treeEntry) isLink() bool { return e.mode == "120000" }

// entry returns the entry that a directory has under a name; the zero value if
// it has none, or dir is no directory.
func (r *Reader) entry(dir treeEntry, name string) (treeEntry, error) {
	if !dir.isTree() {
		return treeEntry{}, nil
	}
	raw, err := r.read(git.OID(dir.oid), "tree", maxTree)
	if err != nil {
		return treeEntry{}, err
	}
	entries, ok := parseTree(raw)
	if !ok {
		return treeEntry{}, fmt.Errorf("tree %s cannot be read", dir.oid)
	}
	return entries[name], nil
}

// at returns the entry at a path of a tree; the zero value if there is none.
func (r *Reader) at(tree git.OID, path string) (e treeEntry, err error) {
	e = treeEntry{mode: "40000", oid: string(tree)}
	for name := range strings.SplitSeq(path, "/") {
		if e, err = r.entry(e, name); err != nil {
			return treeEntry{}, err
		}
	}
	return e, nil
}

// treeMerger merges trees without reading files: in each directory that both sides
// changed, each entry may be changed by one side only, or by both alike. It gives up
// when an entry was removed, changed its kind, or was changed by both in different
// ways: git merge-tree handles those, with renames and conflicts.
//
// git would make the same of them, in spite of renames. A renamed file that the other
// side also changed, and a file that the other side added to a renamed directory, both
// show as an entry that was removed or differs on both sides.
type treeMerger struct {
	objects *Reader
	// to is the object directory for new trees; empty if the caller only asks
	// whether they merge.
	to string
	// seen caches the trees that were read; nil for no cache.
	seen map[git.OID]map[string]treeEntry
}

// merge returns the merged tree, or false when git must do it. With an empty
// m.to the returned tree means nothing.
func (m treeMerger) merge(base, ours, theirs git.OID) (git.OID, bool, error) {
	switch {
	case base == theirs || ours == theirs:
		return ours, true, nil
	case base == ours:
		return theirs, true, nil
	}
	var sides [3]map[string]treeEntry
	for i, o := range []git.OID{base, ours, theirs} {
		var ok bool
		var err error
		if sides[i], ok, err = m.read(o); err != nil || !ok {
			return "", false, err
		}
	}
	merged := make(map[string]treeEntry)
	for _, side := range sides {
		for name := range side {
			if _, done := merged[name]; done {
				continue
			}
			e, ok, err := m.entry(sides[0][name], sides[1][name], sides[2][name])
			if err != nil || !ok {
				return "", false, err
			}
			merged[name] = e
		}
	}
	if m.to == "" {
		return base, true, nil
	}
	o, err := writeObject(m.to, "tree", encodeTree(merged), false)
	return o, err == nil, err
}

// read returns the entries of a tree; false if it is malformed, which git is
// left to judge.
func (m treeMerger) read(o git.OID) (map[string]treeEntry, bool, error) {
	if tree, ok := m.seen[o]; ok {
		return tree, true, nil
	}
	raw, err := m.objects.read(o, "tree", maxTree)
	if err != nil {
		return nil, false, err
	}
	tree, ok := parseTree(raw)
	if ok && m.seen != nil {
		m.seen[o] = tree
	}
	return tree, ok, nil
}

// entry merges one entry of a directory, or returns false when git must do it.
func (m treeMerger) entry(base, ours, theirs treeEntry) (treeEntry, bool, error) {
	none := treeEntry{}
	if ours == none || theirs == none {
		if base != none { // gone on a side
			return none, false, nil
		}
		return cmp.Or(ours, theirs), true, nil
	}
	if base != none && (base.isTree() != ours.isTree() || base.isTree() != theirs.isTree()) {
		return none, false, nil
	}
	switch {
	case ours == theirs || base == theirs:
		return ours, true, nil
	case base == ours:
		return theirs, true, nil
	case !base.isTree():
		return none, false, nil
	}
	o, ok, err := m.merge(git.OID(base.oid), git.OID(ours.oid), git.OID(theirs.oid))
	return treeEntry{base.mode, string(o)}, ok, err
}

const (
	maxTree   = 64 << 20
	nameBytes = 20 // of an object name in a tree
)

// parseTree returns the entries of a tree object by name; false for a malformed
// tree.
func parseTree(raw []byte) (map[string]treeEntry, bool) {
	entries := make(map[string]treeEntry)
	for len(raw) > 0 {
		head, rest, ok := bytes.Cut(raw, []byte{0})
		mode, name, named := bytes.Cut(head, []byte{' '})
		_, twice := entries[string(name)]
		if !ok || !named || twice || len(rest) < nameBytes {
			return nil, false
		}
		entries[string(name)] = treeEntry{string(mode), hex.EncodeToString(rest[:nameBytes])}
		raw = rest[nameBytes:]
	}
	return entries, true
}

// encodeTree returns the content of a tree object. Entries are sorted as git
// sorts them: a directory as if its name ended in a slash.
func encodeTree(entries map[string]treeEntry) []byte {
	key := func(name string) string {
		if entries[name].isTree() {
			return name + "/"
		}
		return name
	}
	var b bytes.Buffer
	for _, name := range slices.SortedFunc(maps.Keys(entries), func(a, b string) int { return cmp.Compare(key(a), key(b)) }) {
		e := entries[name]
		oid, _ := hex.DecodeString(e.oid) // it was encoded by parseTree or is the name of a tree
		fmt.Fprintf(&b, "%s %s\x00%s", e.mode, name, oid)
	}
	return b.Bytes()
}
