package projection

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// index remembers the versions of files that were written here. It is a file of one
// JSON object per line, only appended to, and flushed before a version that it names
// appears.
type index struct {
	disk  *disk.Disk
	file  *os.File                 // nil: nothing is written
	lines int                      // of the file
	files map[string][]disk.Digest // versions of each path, the latest last
	owned map[forge.IntentID]map[string]bool
	seqs  map[forge.IntentID]uint64
	goals map[forge.IntentID]GoalPlaces
	// project is the sequence that the project's journal had when files were written last.
	project uint64
	// read counts the bytes of the lines that were applied from the file.
	read int
	// look leaves out everything but intents' own files and the sequences: no
	// one asks a look for more.
	look bool
}

// GoalPlaces says where the lines of a goal are, and how often which knowledge, also
// that of other goals, helped it.
type GoalPlaces struct {
	History   string         `json:"history"`
	Knowledge string         `json:"knowledge"`
	Applied   map[string]int `json:"applied,omitempty"` // by the id of knowledge
}

// versionsKept is how many versions of a file are recognised as ours. A crash
// leaves at most two in doubt; the rest is for a person's backups.
const versionsKept = 8

// indexLine is one change of the index. Path is set for a version of a file that is
// about to appear, or for a file that is gone; Goal for a note of a goal; Intent
// alone for how far an intent is projected; and Project for how far its project was.
type indexLine struct {
	Path   string         `json:"path,omitempty"`
	SHA256 string         `json:"sha256,omitempty"` // empty: the file is gone
	Intent forge.IntentID `json:"intent,omitempty"`
	Seq    uint64         `json:"seq,omitempty"`
	Goal   *GoalPlaces    `json:"goal,omitempty"`
	// Project has a pointer, as 0 takes back what was noted.
	Project *uint64 `json:"project,omitempty"`
}

// openIndex reads the index, up to a line that cannot be read: what follows it is
// lost. An index that has grown to several times what counts is written anew.
func openIndex(d *disk.Disk) (*index, error) {
	x, whole, err := readIndex(d)
	if err != nil {
		return nil, err
	}
	if live := 4*len(x.files) + len(x.seqs) + len(x.goals); !whole || x.lines > 1000+2*live {
		return x, x.compact()
	}
	return x, x.reopen()
}

// newIndex returns an index that knows nothing.
func newIndex(d *disk.Disk) *index {
	return &index{
		disk:  d,
		files: map[string][]disk.Digest{}, owned: map[forge.IntentID]map[string]bool{}, seqs: map[forge.IntentID]uint64{},
		goals: map[forge.IntentID]GoalPlaces{},
	}
}

// readIndex returns the index as far as it can be read, which is whole or not. It cannot
// be added to on the disk before it is opened.
func readIndex(d *disk.Disk) (x *index, whole bool, err error) {
	x = newIndex(d)
	data, _, err := d.Read(layout.Index, disk.MaxOther)
	if disk.IgnoreMissing(err) != nil {
		return nil, false, err
	}
	return x, x.load(data), nil
}

// load applies the lines and reports whether all of them could be read.
func (x *index) load(data []byte) bool {
	for line := range bytes.Lines(data) {
		l, plain := plainLine(line)
		if !plain && (line[len(line)-1] != '\n' || json.Unmarshal(line, &l) != nil) {
			return false
		}
		x.apply(l)
		x.lines++
		x.read += len(line)
	}
	return true
}

// plainLine reads a line about a version of a file, as it is written where a path
// needs no escapes. Nearly all lines are such, there are some for each intent
// that ever was, and every command reads them. Any other line is not plain.
func plainLine(line []byte) (l indexLine, plain bool) {
	rest, begins := bytes.CutPrefix(line, []byte(`{"path":"`))
	name, rest, cut := bytes.Cut(rest, []byte(`","sha256":"`))
	digest, ends := bytes.CutSuffix(rest, []byte("\"}\n"))
	if !begins || !cut || !ends || len(digest) != 2*len(disk.Digest{}) || bytes.ContainsFunc(name, special) || bytes.ContainsFunc(digest, special) {
		return indexLine{}, false
	}
	return indexLine{Path: string(name), SHA256: string(digest)}, true
}

// special reports whether a character may be written in another way than it is,
// or not be allowed, in a text of JSON.
func special(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

// apply carries out the change of one line in memory.
func (x *index) apply(l indexLine) {
	switch {
	case x.look && (l.Goal != nil || l.Path != "" && !inside(l.Path, layout.Intents)):
		return
	case l.Goal != nil:
		x.goals[l.Intent] = *l.Goal
		return
	case l.Project != nil:
		x.project = *l.Project
		return
	case l.Path == "":
		x.seqs[l.Intent] = l.Seq
		return
	}
	owner := layout.Owner(l.Path)
	var d disk.Digest
	if n, err := hex.Decode(d[:], []byte(l.SHA256)); err != nil || n != len(d) {
		delete(x.files, l.Path)
		delete(x.owned[owner], l.Path)
		return
	}
	x.own(owner, l.Path)
	list := append(slices.DeleteFunc(x.files[l.Path], func(v disk.Digest) bool { return v == d }), d)
	x.files[l.Path] = list[max(0, len(list)-versionsKept):]
}

// own notes that a file is about an intent.
func (x *index) own(owner forge.IntentID, rel string) {
	if x.look {
		return
	}
	if x.owned[owner] == nil {
		x.owned[owner] = map[string]bool{}
	}
	x.owned[owner][rel] = true
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
	x.lines++
	if err := enc.Encode(indexLine{Project: &x.project}); err != nil {
		return err
	}
	next := layout.Index + disk.Fresh
	if err := x.disk.Write(next, b.Bytes()); err != nil {
		return err
	}
	if err := x.disk.Rename(next, layout.Index); err != nil {
		return err
	}
	return x.reopen()
}

// reopen opens the file that is in place now. The one from before stays open.
func (x *index) reopen() error {
	f, err := x.disk.OpenLog(layout.Index)
	if err != nil {
		return err
	}
	x.file = f
	return nil
}

// renew writes the index anew if a person removed it.
func (x *index) renew() error {
	if _, err := x.disk.Stat(layout.Index); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	old := x.file
	return errors.Join(x.compact(), old.Close())
}

// add appends lines with one write, of which a crash may leave the first ones.
// Flush makes sure that they are on the disk. A look that remembers adds
// nothing: the next one goes on from what the file says.
func (x *index) add(flush bool, lines ...indexLine) error {
	if len(lines) == 0 || x.look {
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

// append writes at the end of the file. The part that a full disk let through is taken
// back.
func (x *index) append(data []byte, flush bool) error {
	if x.file == nil {
		return nil
	}
	size, err := x.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := x.file.Write(data); err != nil {
		return errors.Join(err, x.file.Truncate(size))
	}
	if flush {
		return x.disk.Flush(x.file)
	}
	return nil
}

// ours reports whether this is a version of the file that was written here.
func (x *index) ours(rel string, d disk.Digest) bool { return slices.Contains(x.files[rel], d) }

// latest reports whether this is the version that was written here last.
func (x *index) latest(rel string, d disk.Digest) bool {
	versions := x.files[rel]
	return len(versions) > 0 && versions[len(versions)-1] == d
}

// intents returns every intent that was ever written.
func (x *index) intents() []forge.IntentID { return slices.Collect(maps.Keys(x.seqs)) }

// again returns the lines after which those of the intents count as not projected that
// do now.
func (x *index) again(ids ...forge.IntentID) []indexLine {
	var lines []indexLine
	for _, id := range ids {
		if x.seqs[id] != 0 {
			lines = append(lines, indexLine{Intent: id})
		}
	}
	return lines
}

// paths returns the paths of an intent's files, sorted.
func (x *index) paths(id forge.IntentID) []string { return slices.Sorted(maps.Keys(x.owned[id])) }

func (x *index) close() error { return x.file.Close() }
