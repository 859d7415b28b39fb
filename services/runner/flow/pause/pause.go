// Package pause keeps what of an intent is paused, and by whom: the intent or
// single tasks of it by a person, or all intents by a pause of the project.
//
//	pause of a task     holds the steps of that task
//	pause of an intent  holds every step; its resume ends the pauses of tasks, too
//	pause of a project  as that of an intent, until the project resumes; pauses of
//	                    a project are numbered, so that they may arrive in any order
package pause

import (
	"maps"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// State says what is paused. The zero value pauses nothing.
type State struct {
	// Person says that a person paused the intent itself.
	Person bool
	// Project is the number of the project's newest pause that the intent has
	// heard of.
	Project int
	// Over is the number of the project's newest pause that is over.
	Over int
	// Reason is that of the newest pause by a person.
	Reason string
	Tasks  map[forge.TaskID]bool
}

// Whole reports whether the whole intent is paused.
func (s *State) Whole() bool { return s.Person || s.ByProject() }

// ByProject reports whether the project is paused.
func (s *State) ByProject() bool { return s.Project > s.Over }

// Why returns why the intent is paused. A person's own pause comes first.
func (s *State) Why() string {
	if s.ByProject() && !s.Person {
		return forge.ProjectPaused // an intent that came later was not told why
	}
	return s.Reason
}

// Holds reports whether a step of a task, or without a task of the whole
// intent, is not to be issued now.
func (s *State) Holds(id forge.TaskID) bool { return s.Whole() || s.Tasks[id] }

// Known reports whether a pause of the project, or a later one, was applied.
func (s *State) Known(number int) bool { return number <= max(s.Project, s.Over) }

// Task is the one that a person wants to pause.
type Task struct {
	ID forge.TaskID // empty for the whole intent
	// Status is empty if there is no such task.
	Status forge.TaskStatus
	Ended  bool
}

// Begin checks a person's pause.
func (s *State) Begin(of Task) (forge.Decision, error) {
	switch {
	case of.ID == "" && s.Person:
		return rule.Ignore("the intent is paused already")
	case of.ID == "":
	case of.Status == "":
		return rule.Refuse("the intent has no task %q", of.ID)
	case of.Ended:
		return rule.Refuse("task %s is %s already", of.ID, of.Status)
	case s.Tasks[of.ID]:
		return rule.Ignore("the task is paused already")
	}
	return forge.Applied, nil
}

// End checks a person's end of a pause: of a task, or without one of the
// intent, of which steps may be held by an obstacle instead.
func (s *State) End(id forge.TaskID, held bool) (forge.Decision, error) {
	switch {
	case id != "" && !s.Tasks[id]:
		return rule.Refuse("task %q is not paused", id)
	case id != "":
	case !s.Person && s.ByProject():
		return rule.Refuse("the whole project is paused; resume it: pfl-forge resume --all")
	case !s.Person && len(s.Tasks) == 0 && held:
		return rule.Refuse("the intent is not paused, it waits for an account, as others may; when that takes calls again: pfl-forge resume --all")
	case !s.Person && len(s.Tasks) == 0:
		return rule.Refuse("the intent is not paused")
	}
	return forge.Applied, nil
}

// Pause applies a pause that is allowed.
func (s *State) Pause(p *forge.Pause) {
	switch {
	case p.Number > 0:
		s.Project = p.Number
		return
	case p.Task == "":
		s.Person = true
	default:
		s.set(p.Task, true)
	}
	s.Reason = p.Reason
}

// Resume applies the end of a pause that is allowed.
func (s *State) Resume(r *forge.Resume) {
	switch {
	case r.Number > 0:
		s.Over = r.Number
	case r.Task != "":
		s.set(r.Task, false)
	default:
		s.Person, s.Tasks = false, nil
	}
}

// Admitted takes the numbers of the project's pauses as the project knows them.
func (s *State) Admitted(paused, resumed int) {
	s.Project, s.Over = max(s.Project, paused), max(s.Over, resumed)
}

// set notes whether a task is paused. It changes no map in place: copies of the
// state share it.
func (s *State) set(id forge.TaskID, on bool) {
	next := maps.Clone(s.Tasks)
	if next == nil {
		next = map[forge.TaskID]bool{}
	}
	delete(next, id)
	if on {
		next[id] = true
	}
	s.Tasks = next
}
