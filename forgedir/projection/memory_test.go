package projection

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// shelf is a folder in which files are written as Write does, as far as the index is concerned.
type shelf struct {
	t    *testing.T
	root string
	disk *disk.Disk
	x    *index
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{t: t, root: t.TempDir()}
	var err error
	if s.disk, err = disk.Open(s.root); err == nil {
		s.disk.Flush = func(*os.File) error { return nil }
		s.x, err = openIndex(s.disk)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = s.x.close(), s.disk.Close() })
	return s
}

// put writes a file.
func (s *shelf) put(rel, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.root, layout.Dir, rel), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// knows notes that a text is a version of a file that was written here.
func (s *shelf) knows(rel, text string) {
	s.t.Helper()
	if err := s.x.add(false, indexLine{Path: rel, SHA256: disk.DigestOf([]byte(text)).String()}); err != nil {
		s.t.Fatal(err)
	}
}

// look returns whether a file is ours, as a quick look finds it, and whether
// anything was read for that.
func (s *shelf) look(rels ...string) (ours, read bool) {
	s.t.Helper()
	f, err := LookAgain(s.disk)
	if err != nil {
		s.t.Fatal(err)
	}
	ours = true
	for _, rel := range rels {
		if f.Unchanged(rel) {
			continue
		}
		data, info, err := s.disk.Read(rel, disk.MaxIntent)
		if err != nil {
			s.t.Fatal(err)
		}
		ours = f.Ours(rel, data, info) && ours
	}
	read = f.look.memory.next != nil
	f.EndLook()
	return ours, read
}

// awaitCurrent looks until nothing is read any more, which is once the clock of
// the file system has gone on.
func (s *shelf) awaitCurrent(rels ...string) {
	s.t.Helper()
	for range 1000 {
		if ours, read := s.look(rels...); ours && !read {
			return
		}
	}
	s.t.Fatal("it is read again and again")
}

// TestNothingIsReadTwice: a look reads nothing of which nothing has changed,
// and of the index only what follows.
func TestNothingIsReadTwice(t *testing.T) {
	s := newShelf(t)
	var rels []string
	for i := range 20 {
		rel := fmt.Sprintf("intents/i%d.yaml", i)
		s.put(rel, "ours")
		s.knows(rel, "ours")
		rels = append(rels, rel)
	}
	s.awaitCurrent(rels...)
	s.knows("intents/new.yaml", "new")
	s.knows("work/new-001.yaml", "task")
	m := recall(s.disk)
	x, err := m.readIndex()
	if err != nil || x.lines != 2 || len(x.files) != 21 {
		t.Errorf("%d lines were read, %d files are known, %v", x.lines, len(x.files), err)
	}
	m.drop()
	s.awaitCurrent(rels...)
	s.put(rels[3], "mine")
	if ours, _ := s.look(rels...); ours {
		t.Error("a change was not seen")
	}
}

// TestChangedInTheSameTick: a file that changes right after it was read,
// without another size, is read again.
func TestChangedInTheSameTick(t *testing.T) {
	s := newShelf(t)
	const rel = "intents/x.yaml"
	s.knows(rel, "ours")
	for turn := range 300 {
		s.put(rel, "ours")
		if ours, _ := s.look(rel); !ours {
			t.Fatalf("turn %d: ours was not recognised", turn)
		}
		s.put(rel, "mine")
		if ours, _ := s.look(rel); ours {
			t.Fatalf("turn %d: a change was not seen", turn)
		}
	}
}

// TestIndexOfAnother: an index that was replaced, cut off or lost is read from its beginning.
func TestIndexOfAnother(t *testing.T) {
	s := newShelf(t)
	const rel = "intents/x.yaml"
	s.put(rel, "ours")
	s.knows(rel, "ours")
	s.awaitCurrent(rel)
	whole, err := os.ReadFile(filepath.Join(s.root, layout.Dir, layout.Index))
	if err != nil {
		t.Fatal(err)
	}
	for about, c := range map[string]struct {
		text string
		ours bool
	}{
		"cut off": {string(whole[:len(whole)-1]), false}, "empty": {"", false}, "whole": {string(whole), true},
		"other":                    {`{"path":"intents/y.yaml","sha256":"` + disk.DigestOf(nil).String() + "\"}\n" + string(whole), true},
		"a line more that is none": {string(whole) + "{", true},
	} {
		s.put(layout.Index, c.text)
		for range 2 {
			if ours, _ := s.look(rel); ours != c.ours {
				t.Errorf("%s: ours: %t, want %t", about, ours, c.ours)
			}
		}
	}
}

// TestMemory: what is kept is what is recalled, to the last byte, and bytes of
// anything else are nothing.
func TestMemory(t *testing.T) {
	s := newShelf(t)
	const rel = "intents/x.yaml"
	s.put(rel, "ours")
	s.knows(rel, "before")
	s.knows(rel, "ours")
	project := uint64(9)
	if err := s.x.add(false, indexLine{Intent: "x", Seq: 7}, indexLine{Project: &project}); err != nil {
		t.Fatal(err)
	}
	s.awaitCurrent(rel)
	m := recall(s.disk)
	x := m.index
	if x.project != 9 || x.seqs["x"] != 7 || len(x.files[rel]) != 2 || !x.latest(rel, disk.DigestOf([]byte("ours"))) || len(m.held) != 2 || x.read == 0 {
		t.Fatalf("recalled %+v, %v", x, m.held)
	}
	data := m.encode(x)
	for i := range data {
		if again := newMemory(s.disk); again.decode(data[:i]) {
			t.Fatalf("%d bytes of %d are taken for all", i, len(data))
		}
	}
	if again := newMemory(s.disk); !again.decode(data) || again.decode(append(data, 0)) {
		t.Error("what was kept is not recalled")
	}
}
