package mergequeue

import (
	"github.com/pfl-forge/pfl-forge"
)

// Line has the changes of a merge queue as readers see them. It is no part of
// the state: nothing is decided by it.
type Line struct {
	// Places are in the order of the merges; those that wait at their pull requests come last.
	Places []Place
	// Parallel is how many changes are verified at once, Batch how many one run
	// may verify; both are at least 1.
	Parallel, Batch int
	// Held says that no merge begins before something outside of the project has changed.
	Held bool

	// state is that of the queue; nil in a line that was not made of one.
	state *State
}

// Seen returns the newest look at the pull request of each task of an intent
// that has one. The queue forgets them when the run has ended.
func (l *Line) Seen(id forge.IntentID) map[forge.TaskID]forge.PullRequest {
	seen := map[forge.TaskID]forge.PullRequest{}
	if l.state == nil {
		return seen
	}
	for task, t := range l.state.Tasks[id] {
		if t.Pull != nil && t.Pull.Seen != nil {
			seen[task] = *t.Pull.Seen
		}
	}
	return seen
}

// Place is where one change stands.
type Place struct {
	Intent forge.IntentID
	Task   forge.TaskID
	// Position counts from 1, the merge under way; 0 for a change that waits at its pull request.
	Position int
	// Words say the same for a person, and what it waits for, as State.Places has them.
	Words string
	// Merging says that its merge is under way, or is tried again after a failure.
	Merging bool
	// Proposes says that the queue proposes it as a pull request, or goes on
	// with one: when it is merged is the forge's to say.
	Proposes bool
	// Trial is the state of its car; empty if it has none, or one that has to be tried anew.
	Trial CarState
	// Attempt is its merge under way, or its trial.
	Attempt forge.Attempt
	// On are the tasks whose changes its car was put on top of; With are those
	// of them that its trial verifies as well.
	On, With []forge.TaskID
}

// LineOf returns the changes of a queue. It changes nothing.
func LineOf(s *State) Line {
	l := Line{Parallel: s.parallel(), Batch: batches{s}.batch(), Held: s.Red != "" || s.Refused != nil, state: s}
	if m := s.Current; m != nil {
		l.Held = l.Held || m.Stopped
		l.Places = append(l.Places, Place{
			Intent: m.Intent, Task: m.Task, Position: 1, Words: m.words(), Merging: true, Attempt: m.Attempt(), Proposes: m.Change.Pull != nil,
		})
	}
	for _, q := range s.Queued {
		p := Place{Intent: q.Intent, Task: q.Task, Position: len(l.Places) + 1, Attempt: q.Attempt(), Proposes: q.Change.Pull != nil}
		p.Words = words(s, q, p.Position)
		if c := q.Car; c != nil {
			p.Trial, p.On, p.With = c.State, tasksOf(c.Ahead), tasksOf(c.Riders)
		}
		l.Places = append(l.Places, p)
	}
	for _, q := range s.Proposed {
		l.Places = append(l.Places, Place{Intent: q.Intent, Task: q.Task, Words: s.Tasks[q.Intent][q.Task].Pull.words(), Proposes: true})
	}
	return l
}

// tasksOf returns the tasks that references name.
func tasksOf(list []Ref) (tasks []forge.TaskID) {
	for _, r := range list {
		tasks = append(tasks, r.Task)
	}
	return tasks
}
