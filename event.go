package forge

import (
	"strings"
	"time"
)

// Event is the input of a state machine: one thing that happened, as data. Deciding the same event
// twice has no second effect: a machine recognises it by its ID, or by the numbers of its message.
type Event struct {
	ID string    // unique among the events that its sender ever makes. A redelivered event has the ID of the first delivery. Never empty
	To Key       // the state machine that decides on the event
	At time.Time // when a runner first read the event, in UTC: the only clock of the rules. Zero until then
	// Actor is the person or system behind it; the intent's id for what an
	// intent sends. Empty for results, timers and what a project sends.
	Actor  string
	Anchor string // names the record by which another machine sent it; empty if no machine did
	// Signature is that of Via, the account that handed it on, where accounts have
	// keys. Account names its author as a gateway does, Ref where that was said.
	Signature, Via, Account, Ref string
	Message                      Message // one of package messages. Never nil in an event that was accepted
}

// Submit asks for an intent.
type Submit struct {
	Intent Intent // the request. Its ID and Project are those of the event
	// Preapproved says that a person approved the parent intent with this one in its
	// plan, so that the child needs no approval of its own. Only the rules set it.
	Preapproved bool
	// Comments, if not nil, tells of comments on an intent that was submitted before, and asks
	// for nothing: of Intent it has the ID, the Project, the Source and the Origin alone.
	Comments *Comments
}

// Edit changes fields of an intent that is still proposed. A nil field stays as it is.
type Edit struct {
	Title *string // the new title
	Body  *string // the new text. It discards a plan that was made of the old one
	Type  *string // the new type
	Risk  *Risk   // the new declared risk. The judged risk still counts if it is higher
}

// Approve lets an intent that waits for approval continue.
type Approve struct {
	// Plan is the hash of the plan, or of the changes, that was approved. An
	// approval of another one than the present, or of none, is refused.
	Plan string
}

// RequestChanges has a plan, or changes, that wait for a person made again.
// Approvals of them count for nothing any more.
type RequestChanges struct {
	// Hash is that of the plan or the changes, as in Approve; of a change whose
	// reviewers disagree, 12 digits or more of its commit. Others are refused.
	Hash  string
	Words string // what has to be different: the next attempt is told. Not empty
	Task  TaskID // the one whose change is made again; empty: all that Hash names
}

// Wish says what a person wants to be different about what was made before.
type Wish struct {
	Person string // who said so
	Words  string // theirs
}

// Reject ends an intent that waits for a person.
type Reject struct {
	Reason string // shown with the intent
}

// Answer answers one question. When the last open question is answered, the
// step that asked continues in the same session.
type Answer struct {
	Index int // the question's place among the intent's clarifications, from 0
	// Question repeats the question's text, so that an answer to an older question
	// is refused; empty skips that check, and is refused where it approves a change.
	Question string
	Answer   string // the answer, not empty
}

// Retry runs the failed or waiting parts of an intent again.
type Retry struct {
	Instructions string     // given to every agent that works on the intent from now on
	BudgetUSD    float64    // the intent's new budget in US dollars; 0 leaves it as it was
	Requesters   []Identity // set by a parent: the people whose words it passes on. From others they count for nothing
	Adopt        string     // the commit of another one, on the branch of a pull request, that becomes the change; empty: none does
}

// Cancel stops an intent, or one task of it. Commits that were merged stay.
type Cancel struct {
	Reason string // shown with the intent
	Task   TaskID // the task to stop; empty stops the whole intent
}

// The words by which what holds up a project is told.
const (
	// ProjectPaused is the reason that an intent shows while its project is paused.
	ProjectPaused = "the project is paused"
	AccountClosed = "the account of "         // AccountClosed begins the reason of an intent that asks a person about an account, for all
	GitOrigin     = "git origin"              // GitOrigin stands in an Obstacle in the place of an agent: its server does not answer
	GitPush       = "git push"                // GitPush stands there as well: the origin refuses pushes to the base branch
	GitBase       = "git base"                // GitBase stands there as well: the base branch is red
	OriginAway    = "the " + GitOrigin + " "  // OriginAway begins the reason of an intent that tells a person about the origin, for all
	BaseRed       = "the base branch is red " // BaseRed begins that of one which tells a person about the base branch, for all
	AnyReplica    = "replica"                 // AnyReplica stands in an Obstacle as well: no replica can do some step
	NoReplica     = "no " + AnyReplica + " "  // NoReplica begins the reason of an intent that tells a person about that, for all
	ReplicasEnded = "its replicas ended it "  // ReplicasEnded begins the reason of a pause that no person asked for
)

// Outside reports whether a reason that an intent waits is one that it tells
// for all: of an account, of the origin, or of the replicas.
func Outside(reason string) bool {
	return strings.HasPrefix(reason, AccountClosed) || strings.HasPrefix(reason, OriginAway) || strings.HasPrefix(reason, NoReplica)
}

// Pause stops agents and keeps what they did, until a Resume.
type Pause struct {
	Reason string // shown with the intent
	Task   TaskID // the task to pause; empty pauses the whole intent
	Number int    // counts the project's pauses, from 1, in a pause that a project sends to its intents. 0 in a pause by a person
}

// Resume continues a paused intent or task.
type Resume struct {
	Task   TaskID // the task to continue; empty continues the whole intent
	Number int    // the number of the project's pause that is over, in what a project sends to its intents. 0 in what a person sends
}

// Reflect asks a project for a reflection now.
type Reflect struct{}

// TimerFired says that a timer's time has come.
type TimerFired struct {
	Key string    // the timer's key within its state machine
	At  time.Time // when the timer was to fire. A timer that was set again has another time, so the older firing changes nothing
}

// AdmitRun asks the project to admit a run: the first one of an intent, or the
// next one after a retry.
type AdmitRun struct {
	Run   int    // the run that asks, from 1
	Title string // the intent's title
	// About says what the intent is about, to find what has to do with it: the
	// beginnings of its body and criteria, and the files of its plan if it has one.
	About      string
	Type       string     // the intent's type
	Parent     IntentID   // the intent that this one is a child of; empty if it is none
	Source     Source     // where the intent comes from
	Generation int        // counts the reflections between the intent and what a person wanted
	Requesters []Identity // those of the intent
	Goal       bool       // says that the intent is a goal and wants the project's knowledge
}

// RunAdmitted lets a run begin, and tells it what is known from earlier ones.
type RunAdmitted struct {
	Run        int               // the run that may begin
	Budget     Budget            // the project's budget as the newest analysis of any intent read it
	Past       []PastRun         // earlier runs of the project, the most relevant first
	Paused     int               // the number of the project's pause if it is paused; otherwise 0
	Resumed    int               // the number of the newest pause that is over; 0 if none is
	Unread     []Observation     // observations that no reflection has read. Set for intents of type skill_extraction only
	Knowledge  []Knowledge       // comes from the project's goals, the most relevant first
	ReadPolicy bool              // no intent has told the project's policy yet: it is read before an agent is called
	Obstacles  *ObstaclesChanged // which obstacles there are; nil of older runners, whose intents wait for none
	AskFirst   bool              // the policy decides whether a person lets the intent be analyzed; false of older runners
}

// RunPlanned tells the project what an intent is going to do, and which intents it waits for.
type RunPlanned struct {
	Run int // the run whose plan it is
	// DependsOn are the intents that have to be done before. Each is answered
	// with DependencyEnded when it ends, at once if it has ended already.
	DependsOn []IntentID
	Budget    Budget     // the project's budget as this analysis read it
	Children  []IntentID // the intents that this one was split into
	OwnUSD    float64    // the budget that the intent has by itself; see ReserveBudget
	Number    int        // counts the intent's messages about money so far
}

// DependencyEnded tells a waiting intent how an intent ended that it depends on.
type DependencyEnded struct {
	Run    int      // the run that waits
	Intent IntentID // the dependency
	Status Status   // how it ended. Empty means that there is no such intent
	// Cycle is the path from the waiting intent back to itself, set when the
	// dependency can never end because it waits for this one.
	Cycle []IntentID
}

// LockFiles asks for the lock on files after a conflict: until the task is
// merged or withdraws, no other task of the project merges a change to them.
type LockFiles struct {
	Run       int      // the run that asks
	Task      TaskID   // the task that lost the conflict
	Number    int      // counts the task's requests to the project, from 1
	Conflicts []string // the paths that conflicted
	Files     []string // all paths of the change, those of Conflicts included
}

// FilesLocked answers LockFiles.
type FilesLocked struct {
	Task   TaskID // the task that asked
	Number int    // the request that this answers
	// Granted is false when the task held a lock and lost a conflict all the
	// same: then only a change from outside pfl-forge can be the cause.
	Granted bool
}

// QueueMerge puts exactly one commit into the merge queue.
type QueueMerge struct {
	Run        int         // the run that asks
	Task       TaskID      // the task whose change it is
	Number     int         // counts the task's requests to the project, from 1
	Base       string      // the commit on which Head was reviewed, and verified
	Head       string      // the commit to merge
	Tree       string      // the tree of Head
	PatchID    string      // identifies the change, whatever it is based on
	Files      []string    // the paths that the change touches
	Title      string      // the title of the merged commit
	Approver   string      // the person who approved the plan, or the change of protected paths; empty if neither was needed
	Statements []Envelope  // signed envelopes of the workers: that Head was verified, and reviewed. See package proof
	Claims     []string    // Claims describe the plan and the approvals, as JSON by the rules. The runner that issues the merge signs them
	Scripted   bool        // says that nothing of the change is a model's or another system's: see Intent
	Parallel   int         // Policy.MergeParallel, as the run knows it
	Batch      int         // Policy.MergeBatch, the same
	Unverified bool        // Head was not verified: its merge has to do that, also where the base branch is at Base
	MadeOn     string      // see Rebase
	Checks     []Check     // decide criteria of a goal, and have to pass also where the base branch has moved
	Pull       *PullPolicy // says how it is merged by a pull request; nil where it is pushed
	Facts      *PullFacts  // what its pull request says; nil where there is none
}

// MergeEnded answers QueueMerge. Exactly one of Result and Failure is set.
type MergeEnded struct {
	Task     TaskID       // the task that asked
	Number   int          // the request that this answers
	Result   *MergeResult // the outcome of the merge; nil if it could not be tried
	Failure  *Failure     // why the merge could not be tried; otherwise nil
	Executor Executor     // that of the merge's commands; empty if there were none
	Look     int          // numbers the message about a pull request: the newest counts. 0 where there is none
}

// WithdrawRequests takes back what a task asked of its project, and releases its file lock.
type WithdrawRequests struct {
	Run    int    // the run that asked
	Task   TaskID // the task whose requests are void
	Number int    // the newest request that is void; those before it are, too
}

// RunEnded tells the project that a run of an intent ended.
type RunEnded struct {
	Run       int           // the run that ended
	Number    int           // counts the ends of the intent, from 1. A run that ended can end otherwise later, when a person cancels the intent
	Status    Status        // how the run ended
	SpentUSD  float64       // the cost of all runs of the intent so far, in US dollars
	Past      *PastRun      // Past sums the run up for later analyses; nil if it has nothing to teach
	Observed  []Observation // the observations of the run
	Parent    IntentID      // the intent that this one is a child of; empty if it is none
	Reflect   *ReflectOn    // holds the data for a reflection; nil if the run is not to be reflected upon
	Knowledge []Knowledge   // Knowledge was found out by the goal in this run
	Applied   []string      // the ids of knowledge that helped, once for each execution
	Unbilled  []Attempt     // attempts that were withdrawn, and whose costs are still to come
}

// ReflectOn is the material of a reflection on one run, besides its observations.
type ReflectOn struct {
	Intent  Intent           // the intent as it was when the run ended
	History History          // the record of the run
	Policy  ReflectionPolicy // Policy bounds the proposals
}

// ChildChanged tells a parent how far a child intent is.
type ChildChanged struct {
	Intent IntentID // the child
	Run    int      // the child's newest run
	Number int      // the number of the newest end in that run; 0 while it is under way
	Status Status   // how the run ended; proposed while it is under way
}

// RunReflected tells an intent what a reflection made of its run or observations.
type RunReflected struct {
	Run      int          // the run that was reflected upon; 0 if only observations were read
	Step     StepRecord   // records the reflection, with what it cost
	Read     []string     // the ids of the intent's own observations that were read
	Proposed []Proposal   // the intents that were proposed
	Dropped  []Adjustment // the proposals that were not submitted, each with its reason
}

// OverlapChanged tells an intent that the newest changes of one of its tasks
// and of another intent's task do not merge, or that they do again.
type OverlapChanged struct {
	TaskID TaskID  // the task of the intent that is told
	Other  Overlap // the other task and the files in conflict; without files the two merge again
	Number int     // counts the reports of the other task, from 1
}

// Teach is a person's word on what a project knows: it adds, corrects or
// forgets one piece of knowledge.
type Teach struct {
	ID string // that of the piece; empty adds one
	// Knowledge has the words of the piece from then on; nil forgets it. ID,
	// SourceTask, AppliedCount, CreatedAt and Author are the rules' own.
	Knowledge *Knowledge
}

// SetSchedules replaces the schedules of a project. One that is there already,
// and the same, goes on as it is.
type SetSchedules struct {
	Schedules []Schedule // all of them
}

// Schedule has an intent submitted again and again. Package internal/schedules
// says what is allowed.
type Schedule struct {
	Name       string // names it within the project
	Cron, Zone string // when it is due: in five fields or a word such as @daily, and in which time zone; UTC if that is empty
	Missed     string // what becomes of the times that nothing was running at: once or skip; empty for once
	Intent     Intent // has the settings of each intent; all else of it is empty
}

// PauseSchedule pauses or resumes a schedule.
type PauseSchedule struct {
	Name, Reason string // the schedule's name, and what is shown with it
	Paused       bool   // which of the two
}

// ReserveBudget asks the project to reserve money for one call of an agent.
type ReserveBudget struct {
	Run     int     // the run that asks
	Number  int     // counts the intent's messages about money, from 1
	Attempt Attempt // the attempt that the call is for
	Budget  Budget  // the budget as the intent knows it
	USD     float64 // the amount, in US dollars
	Begun   bool    // says that the call continues work that is under way. It comes before calls that begin something
	OwnUSD  float64 // the budget of the intent by itself, which its children share; 0 if it has none
}

// BudgetReserved answers ReserveBudget.
type BudgetReserved struct {
	Attempt Attempt // the attempt that the money is for
	USD     float64 // bounds the cost of the call, in US dollars; 0 if the budget is used up
	Reason  string  // says why there is no money, and what to do; empty if there is
	Number  int     // that of the newest ReserveBudget for the attempt: the answer to an earlier one counts no more
}

// CommitBudget tells the project the costs of an intent, and releases
// reservations of attempts that are not open any more.
type CommitBudget struct {
	Number int // counts the intent's messages about money, from 1
	// SpentUSD is the cost of all runs of the intent so far, in US dollars. It
	// never shrinks, so a message that comes late changes nothing.
	SpentUSD float64
	Open     []Attempt // the attempts that still need what is reserved for them
	OwnUSD   float64   // the budget that the intent has by itself; see ReserveBudget
	Unbilled []Attempt // attempts that were withdrawn, and whose costs are still to come
}

// ObstacleReported tells the project what an intent met that stops the others as well: the
// account of an agent refused a call, or a worker made none because of that; the origin is
// away or refuses pushes; the base branch is red, or how a change did on it since. It is
// answered with ObstaclesChanged; until the obstacle is gone, the step is held.
type ObstacleReported struct {
	Run, Number  int     // the run that tells it; counts the intent's messages of this type, from 1
	Seen         int     // the ObstaclesChanged.Number that the call was issued under
	Agent        string  // the back end whose account it is, or GitOrigin or GitBase
	Failure      Failure // why: credentials, or a quota until a known time; held if no call was made; origin; base_red
	Base, Passed string  // of GitBase: the tip that was verified, and which verdict.Trial passed there; empty if none did
}

// ObstaclesChanged tells an intent which obstacles there are.
type ObstaclesChanged struct {
	Number int        // counts the changes of the project's knowledge of obstacles; an older one is out of date
	Heard  int        // the newest ObstacleReported.Number of the intent that the project has heard
	Asks   bool       // says that this intent asks the person, for all that wait
	Closed []Obstacle // all obstacles, as of Number
	Look   int        // numbers the look at a red base branch that this intent is to take; 0 if it is not
}

// Obstacle says why the account of an agent is not called in a project, what
// the origin does not do, or that the base branch is red.
type Obstacle struct {
	Agent        string        // the back end, or GitOrigin, GitPush, GitBase or AnyReplica
	Reason       FailureReason // auth or quota; origin; push_refused; base_red; replica
	Message      string        // as the account said it, for a person
	Since, Until time.Time     // Until is zero if a person has to resume it, and of the origin
}
