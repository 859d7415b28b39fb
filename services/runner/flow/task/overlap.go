package task

import (
	"maps"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Overlap is another task whose change does not merge with a task's as they are
// now. The task that came later has found it, and its next implementation is told
// of it. The other task was told that it exists.
type Overlap struct {
	forge.Overlap
	Received bool // the other task has found it
}

// ReportOverlaps replaces the overlaps that the task itself has found, and
// tells the other tasks of the difference.
func (t *Task) ReportOverlaps(x *Turn, found []forge.Overlap) {
	for _, o := range t.Overlaps {
		if !o.Received && !slices.ContainsFunc(found, func(f forge.Overlap) bool { return f.TaskID == o.TaskID }) {
			t.report(x, forge.Overlap{TaskID: o.TaskID})
		}
	}
	kept := slices.DeleteFunc(slices.Clone(t.Overlaps), func(o Overlap) bool { return !o.Received })
	for _, f := range found {
		if f.TaskID == t.ID || len(f.Files) == 0 {
			continue
		}
		same := func(o Overlap) bool { return !o.Received && o.TaskID == f.TaskID && slices.Equal(o.Files, f.Files) }
		t.mention(x, f)
		if !slices.ContainsFunc(t.Overlaps, same) {
			t.report(x, f)
		}
		kept = append(kept, Overlap{Overlap: f})
	}
	t.Overlaps = kept
}

// mention notes an overlap in the history, once per other task: its files come and go.
func (t *Task) mention(x *Turn, o forge.Overlap) {
	if len(o.Files) > 0 && !slices.Contains(t.Mentioned, o.TaskID) {
		t.Mentioned = append(slices.Clip(t.Mentioned), o.TaskID)
		x.Adjust(rule.Overlap, t.ID, describe(o))
	}
}

// describe returns an overlap in a line, for the history.
func describe(o forge.Overlap) string { return string(o.TaskID) + ": " + strings.Join(o.Files, ", ") }

// report tells another task what was found about it and this one.
func (t *Task) report(x *Turn, o forge.Overlap) {
	t.Reports++
	other := forge.Overlap{TaskID: t.ID, Files: o.Files}
	if sibling := x.Tasks.Find(o.TaskID); sibling != nil {
		sibling.learn(other)
		return
	}
	to := o.TaskID.Intent()
	if _, err := forge.ParseIntentID(string(to)); err != nil || to == x.Intent.ID {
		return
	}
	x.emit(SendOverlap{To: o.TaskID, Number: t.Reports, Other: other})
}

// learn keeps an overlap that another task has found. Where that one finds none any more, or
// has ended, what this task has found before does not hold either.
func (t *Task) learn(o forge.Overlap) {
	t.Overlaps = slices.DeleteFunc(slices.Clone(t.Overlaps), func(k Overlap) bool {
		return k.TaskID == o.TaskID && (k.Received || len(o.Files) == 0)
	})
	if len(o.Files) > 0 && !t.Ended() {
		t.Overlaps = append(t.Overlaps, Overlap{Overlap: o, Received: true})
	}
}

// endOverlaps removes the overlaps of a task that ended, and tells each of the other tasks once.
func (t *Task) endOverlaps(x *Turn) {
	list := t.Overlaps
	t.Overlaps = nil
	var told []forge.TaskID
	for _, o := range list {
		if !slices.Contains(told, o.TaskID) {
			told = append(told, o.TaskID)
			t.report(x, forge.Overlap{TaskID: o.TaskID})
		}
	}
}

// PendingOverlaps returns the overlapping tasks that the next implementation is
// told of.
func (t *Task) PendingOverlaps() []forge.Overlap {
	var list []forge.Overlap
	for _, o := range t.Overlaps {
		if !o.Received {
			list = append(list, o.Overlap)
		}
	}
	return list
}

// Overlapped takes an overlap that a task of another intent has found.
func (s *Set) Overlapped(x *Turn, f *forge.OverlapChanged) (forge.Decision, error) {
	t, key := s.Find(f.TaskID), string(f.Other.TaskID)+" "+string(f.TaskID)
	if t == nil || t.Ended() || f.Number <= s.Received[key] {
		return rule.Ignore("%s and %s are known to be as they are", f.TaskID, f.Other.TaskID)
	}
	s.Received = maps.Clone(s.Received)
	if s.Received == nil {
		s.Received = map[string]int{}
	}
	s.Received[key] = f.Number
	t.learn(f.Other)
	t.mention(x, f.Other)
	return forge.Applied, nil
}
