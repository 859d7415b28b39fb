package forge

import (
	"slices"
	"time"
)

// Record is one message of a journal: the events that were decided together, and
// everything that has to happen because of them. Decision and outbox are one
// write, so that a crash cannot come between them. Folding the records of a
// journal in their order gives the state of its machine.
type Record struct {
	// Events are the events that were applied, in the order of their decisions.
	// At least one; events that were ignored or refused are not journaled.
	Events []Event
	// Effects are those of all Events together. They happen after the record is
	// stored, and again after a crash.
	Effects Effects
	// Summary is of the state after the last event.
	Summary Summary
	// Previous is the hash of the message before it in its journal. The journal sets it.
	Previous string
	Rules    int // is the version of the rules that decided; 0: the first
}

// Effects are the consequences of a decision, as data. Each effect may happen more
// than once: its identity is a function of the decision, so that whoever receives
// it recognises a repetition. The kinds may happen in any order; within a kind the
// order is kept.
type Effects struct {
	// Commands are attempts for workers. One is not issued again while a worker has it.
	Commands []Command
	// Timers are set, or set again if there is one under the same key.
	Timers []Timer
	// Outbox are events for other state machines of the project, repeated after
	// a crash until they are answered or superseded.
	Outbox []Event
	// Cancels are attempts whose results are not needed any more. Workers stop
	// them and keep what was done.
	Cancels []Attempt
	// ReleasedTasks are tasks that have ended: their checkouts and sessions can go.
	ReleasedTasks []TaskID
	// Ended says that the run of the intent is over: commands of it that no
	// worker has taken can be forgotten.
	Ended bool
}

// Empty reports whether nothing has to happen.
func (e *Effects) Empty() bool {
	return len(e.Commands) == 0 && len(e.Timers) == 0 && len(e.Outbox) == 0 &&
		len(e.Cancels) == 0 && len(e.ReleasedTasks) == 0 && !e.Ended
}

// Timer sends a TimerFired event to its state machine at a point in time. Setting
// a timer again under the same key replaces it.
type Timer struct {
	To  Key       // the state machine that set it
	Key string    // names the timer within the machine
	At  time.Time // when it fires, in UTC
}

// Waiting says what an intent waits for a person to do.
type Waiting string

// What an intent can wait for. Empty: nothing.
const (
	// WaitingApproval: a person has to approve the plan, or a change.
	WaitingApproval Waiting = "approval"
	// WaitingClarification: a person has to answer questions.
	WaitingClarification Waiting = "clarification"
	// WaitingFailed: it is blocked or in error; a person may look at it, then retry or cancel.
	WaitingFailed Waiting = "failed"
	// WaitingDirty: a person's uncommitted changes are in the way of a merge.
	WaitingDirty Waiting = "dirty"
	// WaitingBase: the base branch fails to verify; a person may mend it, and
	// then it goes on by itself.
	WaitingBase Waiting = "base"
	// WaitingBudget: a budget is used up; a person may raise it.
	WaitingBudget Waiting = "budget"
	// WaitingPull: the pull request of a change was closed, or its branch
	// changed by another one; a person may retry.
	WaitingPull Waiting = "pull_request"
	// WaitingPaused: a person paused it, and has to resume it.
	WaitingPaused Waiting = "paused"
)

// Summary is the state of an intent as lists show it; of a project only Key,
// Waiting, Activity, Open, Idle, Project and UpdatedAt are set. The last record of a
// journal carries the present one.
type Summary struct {
	// RunSummary says how far the newest run is.
	RunSummary
	// Key names the state machine.
	Key Key
	// Title is the intent's title.
	Title string
	// Type is the intent's type; empty until it is judged.
	Type string
	// Status is how far the intent is.
	Status Status
	// Risk is the higher of the declared and the judged risk.
	Risk Risk
	// Source is where the intent comes from.
	Source Source
	// Attributes are the intent's own.
	Attributes Attributes
	// Waiting names the kind of decision that a person has to take; empty if none.
	Waiting Waiting
	// Reason says, for a person, why the intent waits or failed.
	Reason string
	// Plan is the hash of the plan that an approval approves; empty without a plan.
	Plan string
	// Usage sums up the consumption of all agent calls of all runs.
	Usage Usage
	// CreatedAt is when the intent was submitted.
	CreatedAt time.Time
	// UpdatedAt is when the newest event was decided.
	UpdatedAt time.Time
	// Parent is the intent that this one is a child of; empty if it is none.
	Parent IntentID
	// Children are the intents that this one was split into.
	Children []ChildSummary
	// Requester is the publisher of the intent: a person by a proven name, or a system.
	Requester string
	// Requesters are the people whose words are in it, by proven and claimed names.
	Requesters []Identity
	// Approval is by whom it is approved, and how many are needed.
	Approval Approval
	// Project has the shared queue and account of a project; nil for an intent.
	Project *ProjectSummary
}

// Approval is how far the approval of an intent is.
type Approval struct {
	// By are the people who approved what waits now or, if nothing does, what there was to approve.
	By []string
	// Needed is how many have to, while the intent waits for it; otherwise 0.
	Needed int
	// Barred may not, because they asked for it.
	Barred []string
}

// ProjectSummary says how long the merge queue of a project is, and what it has spent.
type ProjectSummary struct {
	// Merges counts the changes in the queue, the one under way included.
	Merges int
	// Limits are the project's budgets.
	Limits Budget
	// SpentUSD is the sum that all intents have ever spent, TodayUSD that of Day, in US dollars.
	SpentUSD, TodayUSD float64
	// Day counts from 1970-01-01, UTC.
	Day       int64
	Closed    []Obstacle        // the accounts that refuse calls, and the other obstacles
	Queue     map[string]string // by task: where the first changes of the queue are in it, and what they wait for, in words
	Schedules []ScheduleSummary // in the order in which they were set
}

// ScheduleSummary is a schedule as lists show it.
type ScheduleSummary struct {
	Name, Cron, Zone, Missed, Title, Digest string    // as they were set; the title is that of its intents, the digest that of all
	SetBy, Reason, Skipped                  string    // who set it last, why it is paused, and why nothing was submitted when it was due
	Paused                                  bool      // whether it is
	NextAt, LastAt                          time.Time // when it is due next, and was the last time; zero for never
	LastIntent                              IntentID  // what was submitted then; empty if nothing was
}

// RunSummary is how far an intent's newest run is, as lists show it.
type RunSummary struct {
	// Run is the newest run, from 1.
	Run int
	// Activity says, for a person, what is going on, such as "waits for fix-login".
	Activity string
	// Tasks are those that are under way, waiting or failed. Others are only counted.
	Tasks []TaskSummary
	// TaskCount is how many tasks the plan has.
	TaskCount int
	// TasksDone is how many of them are done.
	TasksDone int
	// Open are the attempts whose results are still wanted.
	Open []Attempt
	// Idle says that no worker, timer or other state machine will change
	// anything by itself: the intent has ended or waits for a person.
	Idle bool
	// Goal is how far a goal is; nil for other intents.
	Goal *GoalSummary
	// Outline has the titles of the plan's tasks or children, a line each;
	// empty before there is a plan, and when the run has ended.
	Outline string
	// RelevantFiles are the paths that the plan names, at most 100.
	RelevantFiles []string
	// Comments are the newest that the intent was told of; nil before the first.
	Comments *Comments
}

// ChildSummary is a child intent as lists show it.
type ChildSummary struct {
	ID     IntentID // names the child
	Title  string   // its title
	Status Status   // how far it is; empty until it has begun
}

// Wants reports whether the result of an attempt would still be decided on.
func (s *Summary) Wants(a Attempt) bool {
	return slices.Contains(s.Open, a)
}

// TaskSummary is a task as lists show it.
type TaskSummary struct {
	ID       TaskID     // names the task
	Title    string     // its title
	Status   TaskStatus // how far it is
	Step     Step       // the one under way; empty if none is
	Attempt  int        // the number of that step's attempt
	Detail   string     // says, for a person, why the task failed or waits
	Paused   bool       // a person paused the task
	Overlaps []Overlap  // tasks under way whose changes do not merge with this one's
}

// View is an intent with everything that is known of it, for files and people.
type View struct {
	// Summary is the present state.
	Summary Summary
	// Intent is the document.
	Intent Intent
	// Tasks are those of the plan, in their order.
	Tasks []Task
	// Reviews are those of all tasks, in the order of their decisions.
	Reviews []Review
	// History has one record per finished run.
	History []History
	// Observations were made by the intent's agents.
	Observations []Observation
	// Audit is the report of an intent of type audit; otherwise nil.
	Audit *Audit
	// Children are the child intents as they are submitted.
	Children []Intent
	// Goal is set for goals.
	Goal *GoalView
	// Seq is the sequence of the last journal record in the view.
	Seq uint64
}

// Decision says whether an event was applied.
type Decision string

// The decisions.
const (
	// Applied: the event is in the journal, with its effects.
	Applied Decision = "applied"
	// Ignored: the event is a duplicate, or about something that is over. Nothing was written.
	Ignored Decision = "ignored"
	// Refused: a person or system asked for something that cannot be. Nothing was written.
	Refused Decision = "refused"
)

// Ruling tells the sender of an event what was decided.
type Ruling struct {
	EventID  string   // the id of the event that was decided
	Decision Decision // says whether it was applied
	Field    string   // names the field that a refusal is about; empty if it is not one field
	Reason   string   // says why the event was ignored or refused, and what to do instead; of one that was applied, that its intent was known
	Intent   IntentID // the intent that the event was for; empty for a project
}

// ProgressKind says what a progress message is about.
type ProgressKind string

// The kinds of progress.
const (
	ProgressStarted ProgressKind = "started" // the attempt has begun
	ProgressText    ProgressKind = "text"    // the agent said something
	ProgressTool    ProgressKind = "tool"    // the agent uses a tool
	ProgressOutput  ProgressKind = "output"  // a command printed a line
	ProgressUsage   ProgressKind = "usage"   // the attempt's consumption so far
	// ProgressEnded: the attempt is over. Text is its outcome.
	ProgressEnded    ProgressKind = "ended"
	ProgressThinking ProgressKind = "thinking" // the agent is thinking
	ProgressLimit    ProgressKind = "limit"    // the agent waits, because the model refuses requests for now
)

// Progress is a live, unstored message from a running attempt.
type Progress struct {
	To      Key          // the intent
	Attempt Attempt      // the running attempt
	Replica ReplicaID    // the worker that runs it
	Kind    ProgressKind // of Text
	Text    string       // one piece of text, safe to print
	Agent   string       // the back end
	Usage   Usage        // the attempt's consumption so far; zero if it is not known
	At      time.Time    // when it happened, in UTC
}
