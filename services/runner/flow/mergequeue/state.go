package mergequeue

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// State is a merge queue. The zero value is an empty one.
type State struct {
	// Tasks has an entry for every task that ever asked for anything.
	Tasks map[forge.IntentID]map[forge.TaskID]*Task
	// Queued are the changes that wait for their turn, the oldest first.
	Queued []*Request
	// Waiting are the requests for a file lock, the oldest first.
	Waiting []*Request
	// Locks are the file locks in force, in the order in which they were given.
	Locks []*Request
	// Current is the merge that is under way; nil if there is none.
	Current *Merge
	// Parallel is how many changes are verified at once, as the newest request
	// said; 0 stands for 1.
	Parallel int
	// Batch is how many changes one run may verify, as the newest request said; 0 stands for 1.
	Batch int
	// Orders counts the requests to merge.
	Orders int
	// Red is the tip of the base branch where that is red; empty if it passes.
	// Only what passed there may be merged.
	Red string
	// Refused is that the origin refuses pushes; nil if it does not.
	Refused *Refusal
	// Proposed are the changes that wait for their pull requests, in their order.
	Proposed []*Request
	// Front is the only one of them that may be put on a tip that has moved.
	Front Ref
	// ToProve are the tasks whose pull requests are merged, and not in the queue to be proved yet.
	ToProve []TaskRef
	// Overtaken is the change that the base branch overtook last, until the next merge begins.
	Overtaken Ref
	// Repairs are the intents to look at what a forge merged.
	Repairs Repairs

	// void are trials to cancel, since the last Couple.
	void []forge.Attempt
	// toOpen are the requests whose pull requests are to be opened, since the last Advance.
	toOpen []*Request
}

// Task is the queue's memory of one task. A snapshot leaves out what is zero.
type Task struct {
	// Number is the number of the newest request. Older ones are void.
	Number int `json:"number,omitzero"`
	// Files are the paths of the change that was to be merged last.
	Files []string `json:"files,omitzero"`
	// Answer is the newest answer to a request to merge; nil before the first.
	Answer *Answer `json:"answer,omitzero"`
	// Denied is the number of the newest request for a lock that was denied.
	Denied int `json:"denied,omitzero"`
	// Withdrawn is the number of the newest request that was withdrawn.
	Withdrawn int `json:"withdrawn,omitzero"`
	// Pull is its pull request; nil before the first.
	Pull *Pull `json:"pull,omitzero"`
}

// merged reports whether the task's change is on the base branch.
func (t *Task) merged() bool {
	return t.Answer != nil && t.Answer.Result != nil && t.Answer.Result.Outcome == forge.MergeDone
}

// Request is a task's request for a merge or for a file lock.
type Request struct {
	Intent forge.IntentID
	Task   forge.TaskID
	// Number counts the task's requests; see forge.QueueMerge.
	Number int
	// Files are the paths of the change.
	Files []string
	// AllFiles says that the lock is on every file.
	AllFiles bool
	// Change is the commit to merge; nil for a lock.
	Change *forge.QueueMerge
	// MergedSince are the files that other tasks merged since the lock was given.
	MergedSince []string
	// Car is its place in the train; nil as long as it has none.
	Car *Car

	// Press says that the forge is to be asked to merge its pull request.
	Press bool
	// Proving is the merge by the forge that is only to be proved; nil otherwise.
	Proving *forge.Landing

	// Order is the place among all requests to merge, by Orders.
	Order int
	// Moves counts how often the base branch moved while the change was verified in its merge.
	Moves int
	// Refusals counts how often the origin refused its push while it accepted no other.
	Refusals int
	// Doubted says that another change was accepted since it was refused.
	Doubted bool
	// Verified is the change as its merge verified it, if the push was refused
	// then, and VerifiedIn where that ran.
	Verified   *forge.Rebase
	VerifiedIn forge.Executor
}

// Merge is the merge that is under way.
type Merge struct {
	Request
	// Claim counts how often it was issued.
	Claim int
	// Errors counts the attempts that failed for a reason that may pass.
	Errors int
	// RetryAt is when it is issued again; zero while a worker has it.
	RetryAt time.Time
	// Stopped says that it waits for what is outside of the project. No timer
	// ends that: GoOn does, when the project has heard that it is there again.
	Stopped bool
	// Gone says that the change was withdrawn. It is merged if it can be, and
	// not tried again later.
	Gone bool
}

// Attempt returns the attempt that the worker's result has to be about.
func (m *Merge) Attempt() forge.Attempt {
	step := forge.StepMerge
	if m.Press {
		step = forge.StepMergePull
	}
	return forge.Attempt{Task: m.Task, Step: step, Number: m.Number, Claim: m.Claim}
}

// TimerKey returns the key of the timer that fires at RetryAt.
func (m *Merge) TimerKey() string { return "merge/" + string(m.Task) }

// IsPaused reports whether the merge waits to be tried again, after a failure of what merges. A
// person's pause is another thing, and the scheduler's.
func (m *Merge) IsPaused() bool { return m.Stopped || !m.RetryAt.IsZero() }

// task returns the entry of a task, an empty one if there is none.
func (s *State) task(id forge.IntentID, t forge.TaskID) *Task {
	if known := s.Tasks[id][t]; known != nil {
		return known
	}
	return &Task{}
}

// renew keeps a task's newest request.
func (s *State) renew(id forge.IntentID, t forge.TaskID, task *Task, number int) {
	task.Number = number
	if s.Tasks == nil {
		s.Tasks = map[forge.IntentID]map[forge.TaskID]*Task{}
	}
	if s.Tasks[id] == nil {
		s.Tasks[id] = map[forge.TaskID]*Task{}
	}
	s.Tasks[id][t] = task
}

// drop removes requests, and file locks with them. The merge that is under way
// goes on.
func (s *State) drop(which func(*Request) bool) {
	s.dropQueued(which)
	if s.Current != nil && which(&s.Current.Request) {
		s.Current.Gone = true
	}
	s.Proposed = slices.DeleteFunc(s.Proposed, which)
	s.Waiting = slices.DeleteFunc(s.Waiting, which)
	s.Locks = slices.DeleteFunc(s.Locks, which)
}

// dropQueued removes requests to merge, and cancels their trials. What the
// forge has merged is proved all the same.
func (s *State) dropQueued(which func(*Request) bool) {
	s.Queued = slices.DeleteFunc(s.Queued, func(q *Request) bool {
		gone := which(q) && q.Proving == nil
		if gone {
			s.uncouple(q)
		}
		return gone
	})
}

// dropTask removes the requests and locks of a task.
func (s *State) dropTask(t forge.TaskID) {
	s.drop(func(r *Request) bool { return r.Task == t })
}

// Forget removes the requests of an intent whose run ended. Of one that is
// done, nothing will be asked any more: its tasks keep the numbers by which a
// repetition is known, and that they are merged. The rest, such as the output
// of verify commands, would be in memory and in every snapshot for ever.
func (s *State) Forget(id forge.IntentID, done bool) {
	s.drop(func(r *Request) bool { return r.Intent == id })
	if !done {
		return
	}
	for _, t := range s.Tasks[id] {
		t.Files = nil
		if t.merged() {
			t.Pull = nil
		}
		if t.merged() {
			short := *t.Answer
			short.Result = &result{Outcome: forge.MergeDone, Commit: t.Answer.Result.Commit}
			t.Answer = &short
		}
	}
}

// Repeat sends again every answer that may come long after its question. Who
// misses another answer asks again.
func (s *State) Repeat(out *outbox.Messages) {
	for _, l := range s.Locks {
		answerLock(out, l.Intent, l.Task, l.Number, true)
	}
	for _, q := range s.Proposed {
		if a := s.Tasks[q.Intent][q.Task].Answer; a != nil && a.Number == q.Number {
			answerMerge(out, q.Intent, a.message())
		}
	}
}

// answerLock tells an intent whether a task of it has the lock.
func answerLock(out *outbox.Messages, id forge.IntentID, t forge.TaskID, number int, granted bool) {
	out.Add(id, fmt.Sprintf("reserved/%s/%d", t, number), &forge.FilesLocked{Task: t, Number: number, Granted: granted})
}

// answerMerge tells an intent how a merge ended.
func answerMerge(out *outbox.Messages, id forge.IntentID, answer *forge.MergeEnded) {
	event := fmt.Sprintf("merged/%s/%d", answer.Task, answer.Number)
	if answer.Look > 0 { // of one request there may be several
		event += fmt.Sprintf("/%d", answer.Look)
	}
	out.Add(id, event, answer)
}
