// Package task is the state machine of one task: from its implementation over
// rebases, reviews and merges to its end. What follows from what is data: see
// Changes in table.go, which docs/ARCHITECTURE.md has as a diagram.
//
// A method per happening takes the facts in and looks the row up. What a stage
// begins with is in Task.enter: entering implementing issues the step that makes
// the change, entering merging asks the project to merge it, and so on. A step that
// is repeated (after an agent's error, a pause, or when there is budget again) stays
// in its stage, or returns to it: Task.Again.
//
// How the change is made and checked, and how often, is up to a Strategy. The one
// here, Change, implements and has the change reviewed; package goal has another.
//
// What the rest of the intent has to do is returned as Effects, in order.
package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/retry"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/session"
)

// maxMerges bounds how often the merge of a task is asked for in a run: when
// commits from outside arrive faster than changes are merged, or a person
// retries and their files are in the way each time.
const maxMerges = 10

// Meeting holds the overlaps of a task with others, and the account of those that were told.
type Meeting struct {
	// Overlaps are the tasks under way that this one does not merge with.
	Overlaps []Overlap
	// Mentioned are the tasks whose overlap with this one is in the history of the run: each once.
	Mentioned []forge.TaskID
	// Reports is the number of the newest message about overlaps to other tasks.
	Reports int
}

// Waited is the newest request of a task to its project.
type Waited struct {
	Adopting

	// Requests is its number. An answer with another number is out of date.
	Requests int
	// Look is the newest message about its pull request; see forge.MergeEnded.
	Look int
}

// Task is the state of one task.
type Task struct {
	// Task is the part that views and commands show.
	forge.Task
	// Spent has the counters of this run that have a bound.
	Spent
	// Waited has the newest request to the project.
	Waited
	// Meeting has the overlaps with other tasks.
	Meeting
	// Seconded is about reviews that take more than one answer.
	Seconded
	// Beginning is about the next implementation.
	Beginning

	// Stage is where the task stands; see Table.
	Stage Stage
	// Implement counts the attempts of the step that makes the change.
	Implement retry.Counter
	// Rebase counts the attempts of rebase.
	Rebase retry.Counter
	// Review counts the attempts of the step that checks the change.
	Review retry.Counter
	// Session is about the implementation.
	Session session.Session
	// ReviewSession is about the newest review or judgment.
	ReviewSession session.Session
	// Unfunded is the step that there is no budget for, in stage overbudget.
	Unfunded forge.Step
	// Cleared is the newest approval of a candidate in spite of protected paths.
	Cleared Clearance
	// Word has the newest answer of its agent beside its commits: blocked, or nothing to do.
	Word Word
	// Replica has the checkout; empty: any may have the next attempt.
	Replica forge.ReplicaID
	// Feedback says what was wrong with the attempt before, for the next one.
	Feedback string
	// Candidate is the change that was verified last; nil if there is none.
	Candidate *forge.Rebase
	// Reviews are of all runs, oldest first.
	Reviews []forge.Review
}

// Beginning says from where a task goes on.
type Beginning struct {
	// Fresh says that the next implementation starts over from the tip of the base
	// branch.
	Fresh bool
	// Stands says that the task failed because its change could not be verified or
	// reviewed: a retry goes on with that. To make it again would find nothing to commit.
	Stands bool
	// Continue says that the next implementation continues in the tree that the one
	// before left, uncommitted files included.
	Continue bool
	// Wish is the newest request for changes by a person for whom the task waited.
	// The next implement and review prompts repeat it. Nil if there is none.
	Wish *forge.Wish
}

// Strategy says how a task's change is made and checked, and how often.
type Strategy interface {
	// Table returns the ways of the task.
	Table() Table
	// Step returns the step whose result a stage waits for; empty if it waits for
	// something else.
	Step(at Stage) forge.Step
	// Counter returns the attempts of a step.
	Counter(t *Task, step forge.Step) *retry.Counter
	// Session returns the session about a step.
	Session(t *Task, step forge.Step) *session.Session
	// Enter is called before a stage begins with its step.
	Enter(t *Task, to Stage)
	// Begin is called before the change is made, for the first time or again. For a
	// row that spends it records the rule. It returns why the task fails instead;
	// empty: it goes on.
	Begin(x *Turn, t *Task, row Row, in Input) string
	// GaveUp is called when a step is not tried any more, and reports whether the
	// task goes on all the same.
	GaveUp(x *Turn, t *Task, step forge.Step, why string) bool
}

// Turn carries the facts that one decision depends on, and collects its effects.
type Turn struct {
	// Now is when the event was first read, and Rules are those that decide.
	Now   time.Time
	Rules rules.Version
	// Intent is the one that the task is of.
	Intent *forge.Intent
	// Policy is the one in force.
	Policy *forge.Policy
	// Names makes the names of new sessions.
	Names session.Names
	// Strategy says how the change is made and checked.
	Strategy Strategy
	// Tasks are all tasks of the intent.
	Tasks *Set
	// Effects are for the intent to carry out, in order.
	Effects []Effect

	few [4]Effect // the beginning of Effects
}

// NewTurn returns a turn that can collect effects.
func NewTurn(x Turn) *Turn {
	x.Effects = x.few[:0]
	return &x
}

// Input describes one event of a task.
type Input struct {
	// On selects the row.
	On On
	// Detail is recorded with the rule of the row.
	Detail string
	// Why says, for a person, why the task failed or waits.
	Why string
	// Feedback is for the next implementation, in rows that spend.
	Feedback string
	// Again says that the same change failed before, by the same command.
	Again bool

	// Conflicts are the files that conflicted.
	Conflicts []string
	// Files are all files of the change that conflicted.
	Files []string
}

// Worker names the replica that made an attempt, and the session of its agent.
type Worker struct {
	Replica forge.ReplicaID
	Session string
}

// Ended reports whether nothing more happens to the task in this run.
func (t *Task) Ended() bool { return t.Stage == Done || t.Stage == Failed }

// Makes reports whether attempts of a step make a task's change.
func Makes(step forge.Step) bool { return step == forge.StepImplement || step == forge.StepExecute }

// Reset lets a failed task try again, from what it did before, or afresh.
func (t *Task) Reset(instructions string, fresh bool) {
	Best{t}.reset()
	t.Stage, t.Status, t.Failure = Pending, forge.TaskPending, ""
	t.Spent, t.Word, t.Mentioned, t.Seconded, t.Taken = Spent{}, Word{}, nil, Seconded{}, nil
	t.Implement.Worked()
	t.Rebase.Worked()
	t.Review.Worked()
	t.Fresh, t.Continue = fresh || t.Head == "", false
	if instructions != "" || t.Fresh || t.Head == t.Base {
		t.Stands = false
	}
	if instructions != "" {
		t.Feedback = strings.TrimSpace(instructions + "\n\n" + t.Feedback)
	}
}

// step takes the row for what happened.
func (t *Task) step(x *Turn, in Input) {
	row, ok := x.Strategy.Table().Find(t.Stage, in.On)
	if !ok {
		return // no row: the stage does not wait for it
	}
	if (Best{t}).takes(x, &in) {
		return
	}
	if row.Rule != "" && !row.Spends {
		x.Adjust(row.Rule, t.ID, in.Detail)
	}
	t.enter(x, row, in)
}

// enter begins a stage.
func (t *Task) enter(x *Turn, row Row, in Input) {
	switch row.To {
	case Implementing:
		t.Second, t.Inquiry = nil, Inquiry{}
		if why := x.Strategy.Begin(x, t, row, in); why != "" {
			t.fail(x, why)
			return
		}
		t.implement(x)
	case Checking:
		t.issue(x, x.Strategy.Step(row.To), row.To)
	case Rebasing, Summarizing, Reviewing:
		x.Strategy.Enter(t, row.To)
		step := x.Strategy.Step(row.To)
		if row.On != Ran { // otherwise the same reviewer goes on
			Pair{t}.ask(x, row)
			t.Inquiry = Inquiry{}
		}
		if row.To != Rebasing && row.On != Ran {
			x.Strategy.Session(t, step).Start(x.Names, t.ID, step)
		}
		t.issue(x, step, row.To)
	case Locking:
		t.lock(x, in)
	case Merging:
		t.merge(x)
	case Red:
		Fault{t}.wait(x, in.Why)
	case Waiting, Held, Protected, OverBudget, Asking, Disputed:
		t.Stage, t.Failure = row.To, in.Why
	case Done:
		if row.On == MergedLate {
			x.emit(StopWork{Task: t})
			x.emit(FreeDependents{Task: t})
		}
		t.End(x, forge.TaskDone, in.Why)
		x.emit(Next{})
	case Failed:
		t.fail(x, in.Why)
	case Any, Pending: // BudgetRaised returns to the stage of its step: see Again
	}
}

// implement sends the task to be implemented: the first time and after a conflict
// to any replica, afterwards to the one that has its checkout.
func (t *Task) implement(x *Turn) {
	t.Status = forge.TaskImplementing
	t.Attempts++
	step := x.Strategy.Step(Implementing)
	if !t.Continue && (t.Fresh || t.Head == "") {
		t.Replica = ""
		if t.Session.Begun || t.Session.Number == 0 {
			t.Session.Start(x.Names, t.ID, step)
		}
	}
	if t.Fresh { // what is made now has nothing of a commit that was adopted
		t.Adopted = nil
	}
	t.Implement.Next()
	t.Stage = Implementing
	x.emit(Issue{Task: t, Step: step, Replica: t.Replica})
}

// issue sends the next attempt of a step to any replica.
func (t *Task) issue(x *Turn, step forge.Step, at Stage) {
	x.Strategy.Counter(t, step).Next()
	t.Stage = at
	x.emit(Issue{Task: t, Step: step})
}

// Again issues a step once more: after a failure or a pause, or when there is
// budget again.
func (t *Task) Again(x *Turn, step forge.Step) {
	if Makes(step) {
		t.implement(x)
		return
	}
	if t.Stage == Checking {
		t.issue(x, step, Checking)
		return
	}
	for _, stage := range []Stage{Rebasing, Summarizing, Reviewing} {
		if x.Strategy.Step(stage) == step {
			t.issue(x, step, stage)
		}
	}
}

// merge asks the project to merge exactly what was verified and approved.
func (t *Task) merge(x *Turn) {
	t.Merges++
	if t.Merges-(t.Wishes-t.Early) > maxMerges {
		t.fail(x, fmt.Sprintf("the merge was tried %d times in this run; its attempts say what was in the way", maxMerges))
		return
	}
	t.Requests++
	t.Stage, t.Failure, t.Offer = Merging, "", nil
	x.emit(AskMerge{Task: t})
}

// lock asks the project for the lock of the files, so that the task loses to its
// siblings only once.
func (t *Task) lock(x *Turn, in Input) {
	t.Requests++
	t.Stage = Locking
	t.Feedback = in.Feedback
	if t.Feedback == "" {
		t.Feedback = "The change conflicted with what was merged meanwhile in: " + strings.Join(in.Conflicts, ", ") +
			". Make it again, on top of the present base branch."
	}
	all := slices.Clone(in.Conflicts)
	for _, f := range in.Files {
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	x.emit(AskLock{Task: t, Conflicts: in.Conflicts, Files: all})
}

// fail gives the task up. Tasks that depend on it cannot be done either.
func (t *Task) fail(x *Turn, why string) {
	x.Adjust(rule.TaskFailed, t.ID, cause.Gist(why))
	t.End(x, forge.TaskFailed, why)
	x.Tasks.failDependents(x)
	x.emit(Next{})
}

// End closes the task and gives back what it holds. Unless that follows from a row,
// nothing else of the intent is started.
func (t *Task) End(x *Turn, status forge.TaskStatus, failure string) {
	t.Status, t.Failure, t.Stands, t.Offer, t.Taken = status, failure, false, nil, nil
	t.Stage = Done
	if status == forge.TaskFailed {
		t.Stage = Failed
	}
	if t.Commit == "" && t.Requests > 0 {
		x.emit(TakeBack{Task: t})
	}
	Said{t}.dropQuestion(x)
	t.endOverlaps(x)
	x.emit(Release{Task: t.ID})
}
