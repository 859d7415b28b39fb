package goals

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
)

// Writer writes the files of goals of one repository. It is not safe for concurrent
// use.
type Writer struct {
	Disk  *disk.Disk
	Files *projection.Files
	Log   *slog.Logger

	// read has the files of lines as they were last read, by path. An entry counts while
	// its file is Unchanged.
	read map[string]*lineFile
	// ignored is set once git was told to ignore layout.GoalDir, by this process.
	ignored bool
}

// Write brings the files of a goal up to date, and the counts of knowledge that helped
// it, whichever file that is in. It reports whether all is written: if not, because a
// person saves a file right now or put something in the way, which is a problem, the goal
// has to be written again. It goes on behind a problem, but ends at an error.
func (w *Writer) Write(v *forge.View) (problems []person.Problem, done bool, err error) {
	if g := v.Goal; g == nil || len(g.Iterations)+len(g.Knowledge)+len(g.Applied) == 0 {
		return nil, true, nil
	}
	places, reason := placesOf(v.Intent.Goal)
	if reason != "" {
		return []person.Problem{{Path: layout.Shown(layout.IntentFile(v.Intent.ID)), Field: "goal", Reason: reason}}, false, nil
	}
	if err := w.remember(v, places); err != nil {
		return nil, false, err
	}
	tally := w.tally()
	want, err := linesOf(v, places, tally)
	if err != nil {
		return nil, false, err
	}
	done = true
	// check makes a problem of an error that a person can mend, once for all files.
	check := func(rel string, ok bool, err error) error {
		done = done && ok && err == nil
		p, ok := inTheWay(rel, err)
		if ok && !slices.Contains(problems, p) {
			problems = append(problems, p)
		}
		if ok {
			return nil
		}
		return err
	}
	for _, rel := range w.paths() {
		ok, err := w.bring(rel, want[rel], tally)
		if _, blocked := inTheWay(rel, err); !places.hold(rel) && (blocked || !ok && err == nil) {
			continue // for those to say whose lines are there
		}
		if err := check(rel, ok, err); err != nil {
			return problems, false, fmt.Errorf("write %s: %w", rel, err)
		}
	}
	if err := check(places.logs, true, w.writeLogs(v, places.logs)); err != nil {
		return problems, false, fmt.Errorf("write %s: %w", places.logs, err)
	}
	return problems, done, nil
}

// Notice has goals written again whose files are gone or were changed. A file that cannot
// be read now may be readable when its goals are written: then they say what is wrong.
func (w *Writer) Notice() error {
	for _, rel := range w.paths() {
		if _, err := w.linesAt(rel); err == nil {
			continue
		}
		if err := w.Files.Again(w.goalsIn(rel)...); err != nil {
			return err
		}
	}
	return nil
}

// remember stores where a goal's lines are and which knowledge helped it, before any of
// them is written: a file that is lost from then on is known to be the goal's.
func (w *Writer) remember(v *forge.View, places places) error {
	note := projection.GoalPlaces{History: places.history, Knowledge: places.knowledge}
	for _, id := range v.Goal.Applied {
		if note.Applied == nil {
			note.Applied = map[string]int{}
		}
		note.Applied[id]++
	}
	was, ok := w.Files.Goals()[v.Intent.ID]
	if ok && was.History == note.History && was.Knowledge == note.Knowledge && maps.Equal(was.Applied, note.Applied) {
		return nil
	}
	return w.Files.RememberGoal(v.Intent.ID, &note)
}

// tally counts over all goals how often knowledge helped, by its id. Knowledge that helped
// no goal is not in it, and neither is that of goals without a note.
func (w *Writer) tally() map[string]int {
	out := map[string]int{}
	for _, note := range w.Files.Goals() {
		for id, n := range note.Applied {
			out[id] += n
		}
	}
	return out
}

// linesOf returns the lines of a goal by their file, oldest first. It adds the ids of the
// goal's knowledge to the tally, so that a count that a person changed is put right
// although it helped no execution.
func linesOf(v *forge.View, places places, tally map[string]int) (map[string][]goalLine, error) {
	want := map[string][]goalLine{places.history: {}, places.knowledge: {}}
	for i := range v.Goal.Iterations {
		s := v.Goal.Iterations[i].Summary
		if s == nil {
			continue
		}
		l, err := historyLineOf(v.Intent.ID, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", places.history, err)
		}
		want[places.history] = append(want[places.history], l)
	}
	for i := range v.Goal.Knowledge {
		k := &v.Goal.Knowledge[i]
		tally[k.ID] += 0 // it has not helped yet
		l, err := knowledgeLineOf(k, tally[k.ID])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", places.knowledge, err)
		}
		want[places.knowledge] = append(want[places.knowledge], l)
	}
	return want, nil
}

// paths returns the paths of all files of lines, of all goals, sorted.
func (w *Writer) paths() []string {
	files := map[string]bool{}
	for _, note := range w.Files.Goals() {
		files[note.History], files[note.Knowledge] = true, true
	}
	return slices.Sorted(maps.Keys(files))
}

// goalsIn returns the goals that have lines in a file.
func (w *Writer) goalsIn(rel string) []forge.IntentID {
	var ids []forge.IntentID
	for id, note := range w.Files.Goals() {
		if uses(&note, rel) {
			ids = append(ids, id)
		}
	}
	return ids
}

// linesAt returns an overview of a file of lines. If the file does not hold the version
// that was written here last, all goals with lines in it are written again, and its
// content, whoever wrote it, counts as ours from then on: these files are never restored.
func (w *Writer) linesAt(rel string) (*lineFile, error) {
	if lines := w.read[rel]; lines != nil && w.Files.Unchanged(rel) {
		return lines, nil
	}
	delete(w.read, rel)
	data, info, err := w.Disk.Read(rel, disk.MaxOther)
	if errors.Is(err, fs.ErrNotExist) {
		if !w.Files.Knows(rel) {
			return parseLines(nil), nil
		}
		if err := w.Files.Again(w.goalsIn(rel)...); err != nil {
			return nil, err
		}
		return parseLines(nil), w.Files.Gone(rel)
	}
	if err != nil {
		return nil, err
	}
	if d := disk.DigestOf(data); !w.Files.Current(rel, d) {
		if err := w.Files.Again(w.goalsIn(rel)...); err != nil {
			return nil, err
		}
		if err := w.Files.Record(rel, d); err != nil {
			return nil, err
		}
	}
	lines := parseLines(data)
	if w.Files.Ours(rel, data, info) {
		if w.read == nil {
			w.read = map[string]*lineFile{}
		}
		w.read[rel] = lines
	}
	return lines, nil
}

// bring adds the lines that a file lacks, and puts its counts right. It reports false
// if a person saves the file right now: then it is looked at again later. Lines are
// appended where that is enough, so that an editor that has the file open sees them.
func (w *Writer) bring(rel string, want []goalLine, tally map[string]int) (bool, error) {
	lines, err := w.linesAt(rel)
	if err == nil && len(lines.lacks(want)) == 0 && !lines.miscounts(tally) {
		return true, nil
	}
	if bad := w.makeFolder(rel); bad != nil || err != nil {
		return false, cmp.Or(bad, err)
	}
	data, _, err := w.Disk.Read(rel, disk.MaxOther)
	if disk.IgnoreMissing(err) != nil {
		return false, err
	}
	w.Disk.Reached("goal read")
	delete(w.read, rel)
	next := extended(recount(data, tally), parseLines(data).lacks(want))
	added, ok := bytes.CutPrefix(next, data)
	if !ok {
		return w.Files.Replace(rel, data, next)
	}
	if done, err := w.Disk.Append(rel, len(data), added); err != nil || !done {
		return false, err
	}
	return true, w.Files.Record(rel, disk.DigestOf(next))
}
