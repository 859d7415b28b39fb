package projection

import (
	"errors"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// Files are the files that show the journals. The type is not safe for concurrent use.
type Files struct {
	disk     *disk.Disk
	index    *index
	bases    bases
	exchange exchange

	// current has the digest of the content, without a revision, that is known to be in
	// place, by path. A file that is not in it is read before it counts as written.
	current map[string]disk.Digest
	// released has a person's version whose events were decided, by path, until it is
	// replaced.
	released map[string]disk.Digest
	// seen describes files that held a version of ours when they were last read, so that
	// they need not be read again.
	seen map[string]fs.FileInfo
	// look is nil where files are written.
	look *look
}

// Open reads the index and finishes what a crash interrupted.
func Open(d *disk.Disk, log *slog.Logger) (*Files, error) {
	x, err := openIndex(d)
	if err != nil {
		return nil, err
	}
	f := newFiles(d, x, log)
	if err := f.exchange.recover(); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return f, nil
}

func newFiles(d *disk.Disk, x *index, log *slog.Logger) *Files {
	return &Files{
		disk: d, index: x, bases: bases{d}, exchange: exchange{disk: d, index: x, log: log},
		current:  map[string]disk.Digest{},
		released: map[string]disk.Digest{},
		seen:     map[string]fs.FileInfo{},
	}
}

// Close ends the use of the index.
func (f *Files) Close() error { return f.index.close() }

// Renew writes the index anew if a person removed it while it was in use.
func (f *Files) Renew() error { return f.index.renew() }

// Projected returns the journal sequence up to which an intent's files are written; 0
// if some of them have to be written again.
func (f *Files) Projected(id forge.IntentID) uint64 { return f.index.seqs[id] }

// Done notes that an intent's files are written up to a sequence. A file of the list
// that is not in place, because a person's edit is, makes that 0.
func (f *Files) Done(id forge.IntentID, seq uint64, list []Target) error {
	for _, t := range list {
		if !f.IsCurrent(t.Path) {
			seq = 0
		}
	}
	if f.index.seqs[id] == seq {
		return nil
	}
	return f.index.add(false, indexLine{Intent: id, Seq: seq})
}

// Again has the files of intents written again, as far as they were written at all.
func (f *Files) Again(ids ...forge.IntentID) error {
	return f.index.add(false, f.index.again(ids...)...)
}

// Rewrite has one file written again, and with it all files of its intent.
func (f *Files) Rewrite(id forge.IntentID, rel string) error {
	f.Recheck(rel)
	return f.Again(id)
}

// Forget has every intent written again if a file that all of them share was ever
// written: only they together know its content.
func (f *Files) Forget(shared string) error {
	if !f.Knows(shared) {
		return nil
	}
	return f.Again(f.index.intents()...)
}

// IsCurrent reports whether a file is known to be as it should be.
func (f *Files) IsCurrent(rel string) bool { return f.current[rel] != disk.Digest{} }

// Recheck has a file read again before it counts as written.
func (f *Files) Recheck(rel string) { delete(f.current, rel) }

// Release lets a person's version of a file be replaced: its events were decided.
func (f *Files) Release(rel string, version disk.Digest) { f.released[rel] = version }

// Knows reports whether the file was ever written here, and is not known to be gone.
func (f *Files) Knows(rel string) bool { return f.index.files[rel] != nil }

// Wrote reports whether a version of a file is ours.
func (f *Files) Wrote(rel string, version disk.Digest) bool { return f.index.ours(rel, version) }

// Current reports whether a version is the last one of ours, or a released one that
// is about to be replaced. An older version of ours is a person's backup, or the
// trace of a crash.
func (f *Files) Current(rel string, version disk.Digest) bool {
	return f.released[rel] == version || f.index.latest(rel, version)
}

// Unchanged reports, without reading it, whether a file still is one that held a
// version of ours. False means that it has to be read.
func (f *Files) Unchanged(rel string) bool {
	if m := f.look.recalled(); m != nil {
		if version, known := m.version(rel, func(rel string) (fs.FileInfo, error) { return f.look.stat(f.disk, rel) }); known && f.index.ours(rel, version) {
			return true
		}
		m.begin()
		return false
	}
	seen, ok := f.seen[rel]
	if !ok {
		return false
	}
	info, err := f.disk.Stat(rel)
	return err == nil && disk.Same(info, seen)
}

// Ours reports whether the content that was just read of a file is ours or released.
// Info describes the file that was read.
func (f *Files) Ours(rel string, data []byte, info fs.FileInfo) bool {
	version := disk.DigestOf(data)
	if f.released[rel] == version {
		return true
	}
	ours := f.index.ours(rel, version)
	switch {
	case ours && f.look.recalled() != nil:
		f.look.memory.remember(rel, info, version)
	case ours && disk.Quiet(info):
		f.seen[rel] = info
	default:
		delete(f.seen, rel)
	}
	return ours
}

// Base returns the former version of an intent's file that has this revision, if it
// is still there.
func (f *Files) Base(id forge.IntentID, revision int64) (document.Intent, bool) {
	return f.bases.get(id, revision)
}

// Paths returns the paths of the files that are known of an intent, sorted.
func (f *Files) Paths(id forge.IntentID) []string { return f.index.paths(id) }

// Record notes that a file holds a version of ours that was not put in place by
// Write or Replace.
func (f *Files) Record(rel string, version disk.Digest) error {
	return f.index.add(false, indexLine{Path: rel, SHA256: version.String()})
}

// Gone notes that a file is not there any more. The version of it that was swapped out
// last is dealt with before, while its versions are known.
func (f *Files) Gone(rel string) error {
	if err := f.exchange.tidyPath(rel); err != nil {
		return err
	}
	f.Recheck(rel)
	delete(f.seen, rel)
	return f.index.add(false, indexLine{Path: rel})
}

// Goals returns the notes of all goals. The map is the index's own: do not change it.
func (f *Files) Goals() map[forge.IntentID]GoalPlaces { return f.index.goals }

// RememberGoal stores where the lines of a goal are, before they are written.
func (f *Files) RememberGoal(id forge.IntentID, note *GoalPlaces) error {
	return f.index.add(false, indexLine{Intent: id, Goal: note})
}

// RemoveStale removes the tasks, reviews and the report that an intent does not have
// any more, since it was analyzed again. List has all that it has.
func (f *Files) RemoveStale(id forge.IntentID, list []Target) error {
	for _, rel := range f.Paths(id) {
		present := slices.ContainsFunc(list, func(t Target) bool { return t.Path == rel })
		if present || !removable(rel) {
			continue
		}
		if err := f.exchange.discard(rel, rel); err != nil {
			return err
		}
		f.disk.Reached("removed")
		if err := f.Gone(rel); err != nil {
			return err
		}
	}
	return nil
}

// removable reports whether a file goes when its intent has no use for it any more.
func removable(rel string) bool {
	return slices.ContainsFunc([]string{layout.Work, layout.Reviews, layout.Reports}, func(dir string) bool { return inside(rel, dir) })
}
