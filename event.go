package forge

import "time"

// Event is the input of a state machine: one thing that happened, as data.
// Deciding the same event twice has no second effect: a machine recognises it
// by its ID, or by the numbers that its message carries.
type Event struct {
	// ID is unique among the events that its sender ever makes. A redelivered
	// event has the ID of the first delivery. Never empty.
	ID string
	// To is the state machine that decides on the event.
	To Key
	// At is when a runner first read the event, in UTC. It is the only clock that
	// rules have. Zero until then.
	At time.Time
	// Actor is the person or system behind the event. For a message that an
	// intent sends to its project it is the intent's id. Empty for results,
	// timers and what a project sends.
	Actor string
	// Message says what happened. Never nil in an event that was accepted.
	Message Message
}

// Submit asks for an intent.
type Submit struct {
	Intent  Intent
	Vouched bool // a person approved the larger intent that this one is a part of
}

// Edit changes fields of an intent; nil fields stay as they are.
type Edit struct {
	Title *string
	Body  *string
	Type  *string
	Risk  *Risk
}

// Approve lets an intent that waits for a person go on. Plan is the hash of
// the plan that was approved; empty approves the present one.
type Approve struct {
	Plan string
}

// Reject ends an intent that waits for a person.
type Reject struct {
	Reason string
}

// Answer answers one question. Question repeats the question's text, so that a
// stale answer is refused; empty skips that check.
type Answer struct {
	Index    int // counted from 0
	Question string
	Answer   string
}

// Retry runs the failed or waiting parts of an intent again.
type Retry struct {
	Instructions string
	BudgetUSD    float64 // the intent's new budget; 0: as it was
}

// Cancel stops an intent, or one task of it. The commits that landed stay.
type Cancel struct {
	Reason string
	Task   TaskID // empty: the whole intent
}

// ProjectPaused is the reason of a pause of the whole project.
const ProjectPaused = "the project is paused"

// Pause stops agents and keeps what they did, until somebody says Resume.
type Pause struct {
	Reason string
	Task   TaskID // empty: the whole intent
	Number int    // from the lane, for the whole project: of its pauses, from 1
}

// Resume goes on with what was paused.
type Resume struct {
	Task   TaskID
	Number int // from the lane: of the pause that is over
}

// Reflect asks for a reflection now.
type Reflect struct{}

// TimerFired says that a timer's time has come.
type TimerFired struct {
	Key string
	At  time.Time // when it was to fire; a timer that was set anew is another one
}

// Enter asks the lane to admit an intent, or, after a retry, to re-admit it.
type Enter struct {
	Run        int
	Title      string
	Type       string
	Parent     IntentID
	Source     Source
	Generation int
	Goal       bool
}

// Admitted lets an intent start, and tells what else is going on.
type Admitted struct {
	Run     int
	Active  []ActiveIntent
	Budget  Budget    // of the project, as far as the lane knows it
	Past    []PastRun // earlier runs of the project, the most relevant first
	Paused  int       // number of the project's pause, if it is paused
	Resumed int       // number of the newest pause that is over
	Unread  []Observation

	Knowledge []Knowledge // of the project, the most relevant first; for a goal
}

// ActiveIntent is what an analysis is told of another intent of the project.
type ActiveIntent struct {
	ID            IntentID
	Title         string
	Status        Status
	RelevantFiles []string
	Plan          string
}

// Planned tells the lane what an intent is going to do and whom it waits for.
type Planned struct {
	Run           int
	RelevantFiles []string
	Plan          string
	DependsOn     []IntentID
	Budget        Budget     // of the project, as its analysis read it
	Children      []IntentID // that it is taken apart into
}

// DependencyEnded tells a waiting intent how an intent that it depends on
// ended. An empty Status means that there is no such intent; Cycle is set when
// the dependency can never end, because it waits for this one.
type DependencyEnded struct {
	Run    int // of the one that waits
	Intent IntentID
	Status Status
	Cycle  []IntentID
}

// Reserve asks for precedence on files after a conflict: until the task landed
// or withdrew, no sibling lands a change to them.
type Reserve struct {
	Run       int
	Task      TaskID
	Number    int      // of the task's requests to the lane, from 1
	Conflicts []string // the files that conflicted
	Files     []string // all files of the change, the conflicting ones included
}

// Reserved answers Reserve. It is not granted when a task that already had
// precedence conflicts again with somebody from outside.
type Reserved struct {
	Task    TaskID
	Number  int
	Granted bool
}

// Land asks the lane to integrate exactly this commit.
type Land struct {
	Run     int
	Task    TaskID
	Number  int    // of the task's requests to the lane, from 1
	Base    string // the parent that Head was reviewed and verified on
	Head    string
	Tree    string
	PatchID string
	Files   []string
	Title   string
}

// Landed answers Land.
type Landed struct {
	Task    TaskID
	Number  int
	Result  *Integration // nil if Failure is set
	Failure *Failure
}

// Withdraw takes back what a task asked of the lane, up to and including the
// request with that number, and gives up its precedence.
type Withdraw struct {
	Run    int
	Task   TaskID
	Number int
}

// End tells the lane that a run of an intent ended.
type End struct {
	Run      int
	Number   int // counted from 1: a run that ended may end otherwise, when a person cancels it
	Status   Status
	SpentUSD float64 // by the intent in all its runs
	Past     *PastRun
	Observed []Observation // in this run
	Parent   IntentID
	Reflect  *ReflectOn // nil: the run is not to be reflected upon

	Knowledge []Knowledge // found in this run
	Applied   []string    // ids of knowledge that helped in this run, once for each execution
}

// ReflectOn is what a reflection reads of a run, besides what was observed.
type ReflectOn struct {
	Intent  Intent
	History History
	Policy  ReflectionPolicy
}

// Child tells an intent about a part of it that is an intent of its own.
type Child struct {
	Intent IntentID
	Run    int
	Number int    // of its newest end; 0: it has begun
	Status Status // how it ended; proposed when it has begun
}

// Reflected tells an intent that its run was reflected upon.
type Reflected struct {
	Run      int
	Step     StepRecord
	Read     []string     // ids of its own observations that were read
	Proposed []Proposal   // with their ids
	Dropped  []Adjustment // proposals that were not submitted, and why
}

// Forecast tells an intent that a task of it does not merge with a task of another
// one as they are now, or, without files, that it does again.
type Forecast struct {
	TaskID TaskID
	Other  Overlap
	Number int // of what the other task has told, from 1
}

// Spend asks the lane to set money aside for one call of an agent.
type Spend struct {
	Run     int
	Number  int // of the intent's messages about money, from 1
	Attempt Attempt
	Budget  Budget // as the intent knows it
	USD     float64
	Begun   bool // the call goes on with work that is under way, and comes before what is not
}

// Funded answers Spend. USD is what the call may cost; 0 with a Reason if the
// budget is used up.
type Funded struct {
	Attempt Attempt
	USD     float64
	Reason  string
}

// Settle tells the lane what an intent has spent, and gives back what was set
// aside before it for attempts that are not open any more.
type Settle struct {
	Number   int // of the intent's messages about money, from 1
	SpentUSD float64
	Open     []Attempt
}
