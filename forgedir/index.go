package forgedir

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// index remembers what was written where. It is a file of one JSON object per
// line, only appended to, and flushed before a version that it names appears.
type index struct {
	root  *os.Root
	file  *os.File
	flush func(*os.File) error
	lines int
	files map[string][]digest // versions of each path, the latest last
	owned map[forge.IntentID]map[string]bool
	seqs  map[forge.IntentID]uint64
	goals map[forge.IntentID]goalNote
}

// versionsKept is how many versions of a file are recognised as ours. A crash
// leaves at most two in doubt; the rest is for a person's backups.
const versionsKept = 8

// indexLine is one change of the index: a version of a file that is about to
// appear, a file that is gone, what is to be known of a goal, or how far an intent
// is projected.
type indexLine struct {
	Path   string         `json:"path,omitempty"`
	SHA256 string         `json:"sha256,omitempty"` // empty: the file is gone
	Intent forge.IntentID `json:"intent,omitempty"`
	Seq    uint64         `json:"seq,omitempty"`
	Goal   *goalNote      `json:"goal,omitempty"`
}

// openIndex reads the index. One that cannot be read counts as lost.
func openIndex(root *os.Root, flush func(*os.File) error) (*index, error) {
	x := &index{
		root: root, flush: flush,
		files: map[string][]digest{}, owned: map[forge.IntentID]map[string]bool{}, seqs: map[forge.IntentID]uint64{},
		goals: map[forge.IntentID]goalNote{},
	}
	data, err := root.ReadFile(indexFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := x.load(data)
	if live := 4*len(x.files) + len(x.seqs) + len(x.goals); !whole || x.lines > 1000+2*live {
		return x, x.compact()
	}
	return x, x.reopen()
}

// load applies the lines and reports whether all of them could be read.
func (x *index) load(data []byte) bool {
	for line := range bytes.Lines(data) {
		var l indexLine
		if line[len(line)-1] != '\n' || json.Unmarshal(line, &l) != nil {
			return false
		}
		x.apply(l)
		x.lines++
	}
	return true
}

func (x *index) apply(l indexLine) {
	switch {
	case l.Goal != nil:
		x.goals[l.Intent] = *l.Goal
		return
	case l.Path == "":
		x.seqs[l.Intent] = l.Seq
		return
	}
	owner := ownerOf(l.Path)
	var d digest
	if n, err := hex.Decode(d[:], []byte(l.SHA256)); err != nil || n != len(d) {
		delete(x.files, l.Path)
		delete(x.owned[owner], l.Path)
		return
	}
	if x.owned[owner] == nil {
		x.owned[owner] = map[string]bool{}
	}
	x.owned[owner][l.Path] = true
	list := append(slices.DeleteFunc(x.files[l.Path], func(v digest) bool { return v == d }), d)
	x.files[l.Path] = list[max(0, len(list)-versionsKept):]
}

// compact writes the index anew, with what still counts.
func (x *index) compact() error {
	var b bytes.Buffer
	x.lines = 0
	enc := json.NewEncoder(&b)
	for path, versions := range x.files {
		for _, v := range versions {
			x.lines++
			if err := enc.Encode(indexLine{Path: path, SHA256: v.String()}); err != nil {
				return err
			}
		}
	}
	for id, seq := range x.seqs {
		x.lines++
		if err := enc.Encode(indexLine{Intent: id, Seq: seq}); err != nil {
			return err
		}
	}
	for id, goal := range x.goals {
		x.lines++
		if err := enc.Encode(indexLine{Intent: id, Goal: &goal}); err != nil {
			return err
		}
	}
	next := indexFile + fresh
	if err := writeFile(x.root, next, b.Bytes(), x.flush); err != nil {
		return err
	}
	if err := x.root.Rename(next, indexFile); err != nil {
		return err
	}
	return x.reopen()
}

func (x *index) reopen() error {
	f, err := x.root.OpenFile(indexFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	x.file = f
	return nil
}

// renew writes the index anew if a person removed it.
func (x *index) renew() error {
	if _, err := x.root.Lstat(indexFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	old := x.file
	return errors.Join(x.compact(), old.Close())
}

// add appends lines with one write. Flush makes sure that they are on the disk.
func (x *index) add(flush bool, lines ...indexLine) error {
	if len(lines) == 0 {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	if err := x.append(b.Bytes(), flush); err != nil {
		return err
	}
	for _, l := range lines {
		x.apply(l)
		x.lines++
	}
	return nil
}

// append takes back what a full disk let through only in part.
func (x *index) append(data []byte, flush bool) error {
	size, err := x.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := x.file.Write(data); err != nil {
		return errors.Join(err, x.file.Truncate(size))
	}
	if flush {
		return x.flush(x.file)
	}
	return nil
}

// ours reports whether this is a version of the file that was written here.
func (x *index) ours(rel string, d digest) bool { return slices.Contains(x.files[rel], d) }

// latest reports whether this is the version that was written here last.
func (x *index) latest(rel string, d digest) bool {
	versions := x.files[rel]
	return len(versions) > 0 && versions[len(versions)-1] == d
}

// knows reports whether the file was ever written here.
func (x *index) knows(rel string) bool { return x.files[rel] != nil }

func (x *index) close() error { return x.file.Close() }

// writeFile makes a file of ours, on the disk when it returns.
func writeFile(root *os.Root, rel string, data []byte, flush func(*os.File) error) error {
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, flush(f), f.Close())
}
