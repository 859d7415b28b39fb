package task

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Effect is something that the rest of the intent has to do because of a task's
// step. Effects are carried out in the order in which they were collected.
type Effect interface{ effect() }

// Adjust records a rule.
type Adjust struct {
	Rule   string
	Task   forge.TaskID
	Detail string
}

// Correct replaces the outcome of the newest step in the history.
type Correct struct{ Outcome string }

// Issue issues the newest attempt of a step. With a replica it is for that one.
type Issue struct {
	Task    *Task
	Step    forge.Step
	Replica forge.ReplicaID
}

// Wait has a change wait for a red base branch: until the project says so, or,
// where that does not keep such facts, until a time.
type Wait struct {
	Task forge.TaskID
	Step forge.Step
	At   time.Time
	// Base is the tip that is red, and Command what fails there.
	Base, Command string
}

// AskMerge asks the project to merge the task's candidate.
type AskMerge struct{ Task *Task }

// AskLock asks the project for a file lock after a conflict.
type AskLock struct {
	Task      *Task
	Conflicts []string
	Files     []string // all files of the change, those in conflict first
}

// TakeBack takes back what the task asked of the project, and gives up its lock.
type TakeBack struct{ Task *Task }

// Request asks for the lock of the files of a change that conflicted.
func (e AskLock) Request(run int) *forge.LockFiles {
	return &forge.LockFiles{Run: run, Task: e.Task.ID, Number: e.Task.Requests, Conflicts: e.Conflicts, Files: e.Files}
}

// Request takes back all that a task asked, up to its newest request.
func (e TakeBack) Request(run int) *forge.WithdrawRequests {
	return &forge.WithdrawRequests{Run: run, Task: e.Task.ID, Number: e.Task.Requests}
}

// Escalate marks the run: only a person can resolve the conflict.
type Escalate struct{}

// StopWork withdraws the task's commands.
type StopWork struct{ Task *Task }

// SendOverlap tells the intent of another task that the two do not merge, or,
// without files, that they do again.
type SendOverlap struct {
	To     forge.TaskID
	Number int // counts the messages of the task, from 1
	Other  forge.Overlap
}

// Release gives the task's checkout back.
type Release struct{ Task forge.TaskID }

// FreeDependents lets the tasks go on that were given up because of a task that is done after all.
type FreeDependents struct{ Task *Task }

// Next starts the tasks that can start now, or ends the run.
type Next struct{}

func (Adjust) effect()         {}
func (Correct) effect()        {}
func (Issue) effect()          {}
func (Wait) effect()           {}
func (AskMerge) effect()       {}
func (AskLock) effect()        {}
func (TakeBack) effect()       {}
func (Escalate) effect()       {}
func (StopWork) effect()       {}
func (SendOverlap) effect()    {}
func (Release) effect()        {}
func (FreeDependents) effect() {}
func (Next) effect()           {}

// emit appends an effect to those of the turn.
func (x *Turn) emit(e Effect) { x.Effects = append(x.Effects, e) }

// Adjust records a rule.
func (x *Turn) Adjust(name string, task forge.TaskID, detail string) {
	x.emit(Adjust{Rule: name, Task: task, Detail: detail})
}

// Correct replaces the outcome of the newest step in the history.
func (x *Turn) Correct(outcome string) { x.emit(Correct{Outcome: outcome}) }
