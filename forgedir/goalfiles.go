package forgedir

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// goalNote is what the index knows of a goal: where its lines are, and how often
// which knowledge, also that of other goals, helped it.
type goalNote struct {
	History   string         `json:"history"`
	Knowledge string         `json:"knowledge"`
	Applied   map[string]int `json:"applied,omitempty"`
}

func (n *goalNote) uses(rel string) bool { return n.History == rel || n.Knowledge == rel }

// writeGoal brings the files of a goal up to date, and the counts of knowledge that
// helped it. Lines are only added: what a person wrote stays. It reports whether
// all is written; what a person put in the way is a problem.
func (w *Workspace) writeGoal(v *forge.View) (problems []Problem, done bool, err error) {
	if g := v.Goal; g == nil || len(g.Iterations)+len(g.Knowledge)+len(g.Applied) == 0 {
		return nil, true, nil
	}
	places, reason := placesOf(v.Intent.Goal)
	if reason != "" {
		return []Problem{{Path: shown(intentFile(v.Intent.ID)), Field: "goal", Reason: reason}}, false, nil
	}
	if err := w.noteGoal(v, places); err != nil {
		return nil, false, err
	}
	tally := w.tally()
	want, err := linesOf(v, places, tally)
	if err != nil {
		return nil, false, err
	}
	done = true
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
	for _, rel := range w.goalFiles() {
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

// noteGoal remembers a goal before its lines are written.
func (w *Workspace) noteGoal(v *forge.View, places goalPlaces) error {
	note := goalNote{History: places.history, Knowledge: places.knowledge}
	for _, id := range v.Goal.Applied {
		if note.Applied == nil {
			note.Applied = map[string]int{}
		}
		note.Applied[id]++
	}
	was, ok := w.index.goals[v.Intent.ID]
	if ok && was.History == note.History && was.Knowledge == note.Knowledge && maps.Equal(was.Applied, note.Applied) {
		return nil
	}
	return w.index.add(false, indexLine{Intent: v.Intent.ID, Goal: &note})
}

// tally counts over all goals how often knowledge helped. It knows the ids that did.
func (w *Workspace) tally() map[string]int {
	out := map[string]int{}
	for _, note := range w.index.goals {
		for id, n := range note.Applied {
			out[id] += n
		}
	}
	return out
}

// linesOf returns the lines of a goal by their file.
func linesOf(v *forge.View, places goalPlaces, tally map[string]int) (map[string][]goalLine, error) {
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

// goalFiles are all files of lines, sorted.
func (w *Workspace) goalFiles() []string {
	files := map[string]bool{}
	for _, note := range w.index.goals {
		files[note.History], files[note.Knowledge] = true, true
	}
	return slices.Sorted(maps.Keys(files))
}

// noticeGoals has goals written again whose files are gone or were changed.
func (w *Workspace) noticeGoals() error {
	for _, rel := range w.goalFiles() {
		if _, err := w.linesAt(rel); err == nil {
			continue
		}
		if err := w.index.add(false, w.lookAgain(rel)...); err != nil {
			return err
		}
	}
	return nil
}

// lookAgain has every goal written again that has lines in a file.
func (w *Workspace) lookAgain(rel string) []indexLine {
	var lines []indexLine
	for id, note := range w.index.goals {
		if note.uses(rel) && w.index.seqs[id] != 0 {
			lines = append(lines, indexLine{Intent: id})
		}
	}
	return lines
}

// linesAt returns what a file of lines holds. If that is not what was written here
// last, all goals that have lines in it are written again.
func (w *Workspace) linesAt(rel string) (*lineFile, error) {
	if f := w.lines[rel]; f != nil && w.unchanged(rel) {
		return f, nil
	}
	delete(w.lines, rel)
	delete(w.seen, rel)
	data, info, err := w.read(rel, maxNotesBytes)
	if isMissing(err) {
		if !w.index.knows(rel) {
			return parseLines(nil), nil
		}
		if err := w.tidyPath(rel); err != nil {
			return nil, err
		}
		return parseLines(nil), w.index.add(false, append(w.lookAgain(rel), indexLine{Path: rel})...)
	}
	if err != nil {
		return nil, err
	}
	d := digestOf(data)
	if !w.index.latest(rel, d) {
		if err := w.index.add(false, append(w.lookAgain(rel), indexLine{Path: rel, SHA256: d.String()})...); err != nil {
			return nil, err
		}
	}
	f := parseLines(data)
	if time.Since(info.ModTime()) > racy {
		w.lines[rel], w.seen[rel] = f, signatureOf(info)
	}
	return f, nil
}

// bring adds the lines that a file lacks, and puts its counts right. It reports false
// if a person saves it right now: then it is looked at again later.
func (w *Workspace) bring(rel string, want []goalLine, tally map[string]int) (bool, error) {
	f, err := w.linesAt(rel)
	if err == nil && len(f.lacks(want)) == 0 && !f.miscounts(tally) {
		return true, nil
	}
	if bad := w.makeGoalFolder(rel); bad != nil || err != nil {
		return false, cmp.Or(bad, err)
	}
	data, _, err := w.read(rel, maxNotesBytes)
	if ignoreMissing(err) != nil {
		return false, err
	}
	w.reached("goal read")
	delete(w.lines, rel)
	delete(w.seen, rel)
	next := extended(recount(data, tally), parseLines(data).lacks(want))
	if added, ok := bytes.CutPrefix(next, data); ok {
		return w.extend(rel, data, added)
	}
	return w.exchange(rel, data, next)
}

// exchange replaces a file unless a person changed it meanwhile.
func (w *Workspace) exchange(rel string, before, next []byte) (bool, error) {
	r := replacement{target: target{rel: rel}, data: next, expect: digestOf(before)}
	if err := w.index.add(true, w.versions(r)...); err != nil {
		return false, err
	}
	w.reached("goal recorded")
	if err := w.stage(rel, next); err != nil {
		return false, err
	}
	if done, err := w.install(rel, r.expect); err != nil || !done {
		return false, err
	}
	return true, w.syncDirs(path.Dir(rel))
}

// extend appends to a file with one write. A crash leaves all or a part of it; what
// a full disk let through only in part is taken back.
func (w *Workspace) extend(rel string, before, added []byte) (bool, error) {
	root, name, err := w.place(rel)
	if err != nil {
		return false, err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, &errKind{kind(info.Mode())}
	case info.Size() != int64(len(before)):
		return false, nil
	}
	w.reached("goal opened")
	if n, err := f.Write(added); err != nil {
		if now, bad := f.Stat(); bad == nil && now.Size() == int64(len(before)+n) {
			err = errors.Join(err, f.Truncate(int64(len(before))))
		}
		return false, err
	}
	w.reached("goal extended")
	if err := errors.Join(w.flush(f), w.syncDirs(path.Dir(rel))); err != nil {
		return false, err
	}
	return true, w.index.add(false, indexLine{Path: rel, SHA256: digestOf(slices.Concat(before, added)).String()})
}

// writeLogs keeps what happened in the iterations that are summed up, as far as there
// is still a transcript of it. An iteration has those attempts of execute that
// came after the one before.
func (w *Workspace) writeLogs(v *forge.View, dir string) error {
	if v.Intent.Goal == nil || !v.Intent.Goal.RawLog || len(v.Tasks) == 0 {
		return nil
	}
	first := 1
	for i := range v.Goal.Iterations {
		it := &v.Goal.Iterations[i]
		if it.Summary == nil {
			continue
		}
		rel := path.Join(dir, string(v.Intent.ID), fmt.Sprintf("iteration-%03d.jsonl", it.Number))
		if err := w.writeLog(rel, v, first, it.Attempt); err != nil {
			return err
		}
		first = it.Attempt + 1
	}
	return nil
}

func (w *Workspace) writeLog(rel string, v *forge.View, first, last int) error {
	if w.exists(rel) {
		return nil
	}
	var log []byte
	for n := first; n <= last; n++ {
		a := forge.Attempt{Task: v.Tasks[0].ID, Step: forge.StepExecute, Number: n}
		text, _, err := w.read(path.Join(logsDir, transcript.FileName(v.Intent.ID, a)), maxNotesBytes)
		if ignoreMissing(err) != nil {
			w.log.Warn("cannot read a transcript", "iteration", rel, "err", err)
		}
		log = append(log, text...)
	}
	if len(log) == 0 {
		return nil
	}
	if err := w.makeGoalFolder(rel); err != nil {
		return err
	}
	next := path.Join(stagingDir, "iteration"+fresh)
	if err := writeFile(w.root, next, log, w.flush); err != nil {
		return err
	}
	w.reached("log staged")
	if err := w.moveNew(next, rel); errors.Is(err, fs.ErrExist) { // a person was quicker
		return w.root.Remove(next)
	} else if err != nil {
		return err
	}
	w.reached("log installed")
	return w.syncDirs(path.Dir(rel))
}

// inTheWay says what a person put in the place of a file or a folder of goals.
func inTheWay(rel string, err error) (Problem, bool) {
	if err == nil {
		return Problem{}, false
	}
	if bad, ok := errors.AsType[*errFolder](err); ok {
		return Problem{Path: bad.name, Reason: "is " + bad.what + ", not a directory", Hint: "remove it"}, true
	}
	if bad, ok := errors.AsType[*errIgnore](err); ok {
		return Problem{Path: ignoreFile, Reason: "is " + bad.what, Hint: bad.hint()}, true
	}
	p := unreadable(rel, err)
	return p, p.Hint != ""
}
