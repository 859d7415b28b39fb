package forge

import (
	"slices"
	"time"
)

// Record is one message of a machine's journal: the events that were decided,
// and everything that has to happen because of them. The decision and its
// outbox are one write, so a crash between them cannot happen.
type Record struct {
	Events  []Event // in the order in which they were decided
	Effects Effects
	Summary Summary // of the state after the last event
}

// Effects is what must happen because of a decision. Each is safe to repeat:
// its id is a function of the decision.
type Effects struct {
	Commands []Command
	Timers   []Timer
	Notes    []Event   // events to other machines
	Cancels  []Attempt // running attempts that nobody waits for any more
	Released []TaskID  // tasks whose checkouts are not needed any more
	Ended    bool      // the intent's run is over: its commands can be forgotten
}

// Empty reports whether nothing has to happen.
func (e *Effects) Empty() bool {
	return len(e.Commands) == 0 && len(e.Timers) == 0 && len(e.Notes) == 0 &&
		len(e.Cancels) == 0 && len(e.Released) == 0 && !e.Ended
}

// Timer sends a TimerFired event to its machine at a point in time. Setting a
// timer again under the same key replaces it.
type Timer struct {
	To  Key
	Key string
	At  time.Time
}

// Waiting says what an intent waits for a person to do.
type Waiting string

// What an intent can wait for. Empty: nothing.
const (
	WaitingApproval      Waiting = "approval"
	WaitingClarification Waiting = "clarification"
	WaitingFailed        Waiting = "failed" // blocked or error: look at it, then retry or cancel
	WaitingDirty         Waiting = "dirty"  // uncommitted changes are in the way
	WaitingBudget        Waiting = "budget" // raise it, or let it be
	WaitingPaused        Waiting = "paused" // resume it
)

// Summary is a machine's state as lists show it. The last record of a journal
// carries the present one.
type Summary struct {
	Key       Key
	Title     string
	Type      string
	Status    Status
	Risk      Risk
	Source    Source
	Priority  int
	Run       int
	Waiting   Waiting
	Reason    string        // why it waits or failed, for a person
	Activity  string        // what goes on, for a person: "waits for fix-login"
	Plan      string        // hash of the plan that an approval approves
	Tasks     []TaskSummary // those under way, waiting or failed; the others are only counted
	TaskCount int
	TasksDone int
	Open      []Attempt // attempts whose results are still wanted
	Settled   bool      // nothing can go on without a person
	Usage     Usage
	CreatedAt time.Time
	UpdatedAt time.Time
	Parent    IntentID
	Children  []ChildSummary
	Requester string // who wanted it
	Approver  string // who approved it, if that was needed
	Goal      *GoalSummary
}

// ChildSummary is a part of an intent as lists show it.
type ChildSummary struct {
	ID     IntentID
	Title  string
	Status Status
}

// Wants reports whether the result of an attempt would still be decided on.
func (s *Summary) Wants(a Attempt) bool {
	return slices.Contains(s.Open, a)
}

// TaskSummary is a task as lists show it.
type TaskSummary struct {
	ID      TaskID
	Title   string
	Status  TaskStatus
	Step    Step // empty if none is under way
	Attempt int
	Detail  string // why it failed or waits
	Paused  bool

	Overlaps []Overlap // tasks under way that it does not merge with
}

// View is everything that is known of one intent, for files and people.
type View struct {
	Summary      Summary
	Intent       Intent
	Tasks        []Task
	Reviews      []Review
	History      []History // one per finished run
	Observations []Observation
	Audit        *Audit   // of an intent of type audit
	Parts        []Intent // that it is taken apart into, as they are submitted
	Goal         *GoalView
	Seq          uint64 // of the last journal record in it
}

// Decision is what became of an event.
type Decision string

// The decisions.
const (
	Applied Decision = "applied"
	Ignored Decision = "ignored" // a duplicate, or about something that is over
	Refused Decision = "refused" // a person asked for what cannot be
)

// Ruling tells the sender of an event what was decided.
type Ruling struct {
	EventID  string
	Decision Decision
	Field    string // what the refusal is about, if it is one field
	Reason   string // why it was ignored or refused, and what to do instead
	Intent   IntentID
}

// ProgressKind says what a progress message is about.
type ProgressKind string

// The kinds of progress.
const (
	ProgressStarted  ProgressKind = "started"
	ProgressText     ProgressKind = "text"
	ProgressTool     ProgressKind = "tool"
	ProgressOutput   ProgressKind = "output"
	ProgressUsage    ProgressKind = "usage"
	ProgressEnded    ProgressKind = "ended"
	ProgressThinking ProgressKind = "thinking"
	ProgressLimit    ProgressKind = "limit" // waits, because the model refuses for now
)

// Progress is a live, unstored message from a running attempt.
type Progress struct {
	To      Key
	Attempt Attempt
	Replica ReplicaID
	Kind    ProgressKind
	Text    string
	Agent   string
	Usage   Usage
	At      time.Time
}
