package task

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// maxParallel bounds how many tasks of one intent are under way, so that a wide
// fan-out leaves room for others and its decisions stay small enough to record.
const maxParallel = 16

// Set is the tasks of an intent.
type Set struct {
	Tasks []*Task
	// Received has the newest OverlapChanged.Number, by the ids of the task that sent it and of
	// the task of this set that received it.
	Received map[string]int
	// Used has the newest numbers of the attempts of tasks that another plan took the place of.
	Used map[forge.TaskID]Numbers
}

// Numbers are those of the newest attempts of a task: to implement, rebase and review it.
type Numbers [3]int

// Replace puts the tasks of another plan in place of those before; nil while there is none.
// A task that has the id of one before goes on with its numbers: the result of an attempt
// that was given up may still come, and would be taken for that of the new plan's first one.
func (s *Set) Replace(by rules.Version, tasks []*Task) {
	if by.Has(rules.UsedNumbers) {
		for _, t := range s.Tasks {
			if n := (Numbers{t.Implement.Number, t.Rebase.Number, t.Review.Number}); n != (Numbers{}) {
				if s.Used == nil {
					s.Used = map[forge.TaskID]Numbers{}
				}
				s.Used[t.ID] = n
			}
		}
		for _, t := range tasks {
			n := s.Used[t.ID]
			t.Implement.Number, t.Rebase.Number, t.Review.Number = n[0], n[1], n[2]
		}
	}
	s.Tasks = tasks
}

// CommitTitle returns the title of a task's commit on the base branch.
func (s *Set) CommitTitle(in *forge.Intent, t *Task) string {
	if len(s.Tasks) == 1 {
		return in.Title
	}
	return t.Title
}

// Find returns a task, or nil.
func (s *Set) Find(id forge.TaskID) *Task {
	i := slices.IndexFunc(s.Tasks, func(t *Task) bool { return t.ID == id })
	if i < 0 {
		return nil
	}
	return s.Tasks[i]
}

// At returns the tasks in a stage.
func (s *Set) At(stage Stage) []*Task {
	var list []*Task
	for _, t := range s.Tasks {
		if t.Stage == stage {
			list = append(list, t)
		}
	}
	return list
}

// Has reports whether a task is in a stage.
func (s *Set) Has(stage Stage) bool {
	return slices.ContainsFunc(s.Tasks, func(t *Task) bool { return t.Stage == stage })
}

// OfBase returns the tasks that wait for the base branch to pass again.
func (s *Set) OfBase() []*Task {
	var list []*Task
	for _, t := range s.Tasks {
		if (Fault{t}).OfBase() {
			list = append(list, t)
		}
	}
	return list
}

// BaseHeld reports whether tasks wait for the base branch, and a pause holds each of them.
func (s *Set) BaseHeld(paused func(forge.TaskID) bool) bool {
	of := s.OfBase()
	return len(of) > 0 && !slices.ContainsFunc(of, func(t *Task) bool { return !paused(t.ID) })
}

// Begun reports whether a task was ever implemented.
func (s *Set) Begun() bool {
	return slices.ContainsFunc(s.Tasks, func(t *Task) bool { return t.Attempts > 0 })
}

// ReliesOn reports whether the approval of a person lets a change under way be
// merged, and would count no more if they asked for what is done. Those of some
// tasks are left out: what is made again needs another one.
func (s *Set) ReliesOn(by string, but ...*Task) bool {
	return slices.ContainsFunc(s.Tasks, func(t *Task) bool { return !slices.Contains(but, t) && !t.Ended() && t.Cleared.By.Voids(by) })
}

// Lapse forgets the approvals of changes by people who are among the requesters
// now. What was merged stays as it is.
func (s *Set) Lapse(requesters []forge.Identity) {
	for _, t := range s.Tasks {
		if t.Status != forge.TaskDone && t.Cleared.By.VoidsAny(requesters) {
			t.Cleared = Clearance{}
		}
	}
}

// Done counts the tasks that are done.
func (s *Set) Done() int {
	n := 0
	for _, t := range s.Tasks {
		if t.Stage == Done {
			n++
		}
	}
	return n
}

// Work calls start for the tasks whose dependencies are done, in order, as far as
// there is room, and reports whether all tasks have ended.
func (s *Set) Work(start func(*Task)) (ended bool) {
	busy, ended := 0, true
	for _, t := range s.Tasks {
		if t.Stage != Pending && !t.Ended() {
			busy++
		}
	}
	for _, t := range s.Tasks {
		if t.Stage == Pending && busy < maxParallel && s.ready(t) {
			start(t)
			busy++
		}
		ended = ended && t.Ended()
	}
	return ended
}

// ready reports whether all that a task depends on is done.
func (s *Set) ready(t *Task) bool {
	return !slices.ContainsFunc(t.DependsOn, func(id forge.TaskID) bool { return s.Find(id).Stage != Done })
}

// failDependents gives up the tasks that cannot be done, because they depend on
// one that failed.
func (s *Set) failDependents(x *Turn) {
	for again := true; again; {
		again = false
		for _, d := range s.Tasks {
			i := slices.IndexFunc(d.DependsOn, func(id forge.TaskID) bool { return s.Find(id).Stage == Failed })
			if d.Stage == Pending && i >= 0 {
				x.Adjust(rule.FailDependents, d.ID, fmt.Sprintf("%s failed", d.DependsOn[i]))
				d.End(x, forge.TaskFailed, whyGivenUp(d.DependsOn[i]))
				again = true
			}
		}
	}
}

// Free lets the tasks begin that were given up only because one failed that is done after all.
func (s *Set) Free(done *Task) {
	for _, d := range s.Tasks {
		if d.Stage == Failed && d.Attempts == 0 && d.Failure == whyGivenUp(done.ID) {
			d.Reset("", false)
			s.Free(d) // what depends on it waits for it again
		}
	}
}

// whyGivenUp says why a task is given up that depends on one that failed.
func whyGivenUp(failed forge.TaskID) string {
	return fmt.Sprintf("it depends on %s, which failed", failed)
}

// EndAll closes the tasks that have not ended.
func (s *Set) EndAll(x *Turn, why string) {
	for _, t := range s.Tasks {
		if !t.Ended() {
			t.End(x, forge.TaskFailed, why)
		}
	}
}

// Files returns the files that the tasks are planned to change.
func (s *Set) Files(most int) []string {
	var list []string
	for _, t := range s.Tasks {
		for _, f := range t.RelevantFiles {
			if !slices.Contains(list, f) && len(list) < most {
				list = append(list, f)
			}
		}
	}
	return list
}
