package document

import (
	"slices"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
)

// QueueRequest asks for the merge queue of a project.
type QueueRequest struct {
	// Intent is the only one of whose changes is told, and then of its pull
	// requests as well; empty: all changes are told.
	Intent forge.IntentID `json:"intent,omitempty"`
}

// Check returns the mistakes of the request.
func (r *QueueRequest) Check() []forge.FieldError {
	if _, err := forge.ParseIntentID(string(r.Intent)); r.Intent != "" && err != nil {
		return []forge.FieldError{{Field: "intent", Reason: err.Error()}}
	}
	return nil
}

// Of returns no intent: the queue is a project's.
func (*QueueRequest) Of() forge.IntentID { return "" }

// Queue tells what keeps the work of a project waiting, and its merge queue.
type Queue struct {
	// Paused says that a person has paused the whole project.
	Paused bool `json:"paused,omitempty" yaml:"paused,omitempty"`
	// Facts keep steps of all intents waiting; none if nothing does.
	Facts []Fact `json:"facts" yaml:"facts"`
	// Parallel is how many changes are verified at once, and Batch how many one run may verify.
	Parallel int `json:"parallel" yaml:"parallel"`
	Batch    int `json:"batch"    yaml:"batch"`
	// Changes are in the order of their merges; those that wait at their pull requests come last.
	Changes []QueuedChange `json:"changes" yaml:"changes"`
	// LeftOut counts those at the end that there was no room for.
	LeftOut int `json:"left_out,omitempty" yaml:"left_out,omitempty"`
	// Pulls are the pull requests of the tasks of the intent that was asked
	// for, as long as its run goes on.
	Pulls []QueuedPull `json:"pulls,omitempty" yaml:"pulls,omitempty"`
	// Basis says what the estimates are made of; left out if there are none.
	Basis *QueueBasis `json:"basis,omitempty" yaml:"basis,omitempty"`
}

// Fact keeps work of a project waiting: an account that refuses calls, an
// origin that is away or refuses pushes, a base branch that is red.
type Fact struct {
	// Fact is auth, quota, origin, push_refused, base_red or replica.
	Fact forge.FailureReason `json:"fact" yaml:"fact"`
	// Of is the account that refuses calls, or what of git it is about.
	Of string `json:"of" yaml:"of"`
	// Why has the words of the origin or the account.
	Why string `json:"why" yaml:"why"`
	// Since is when the project heard of it first.
	Since time.Time `json:"since" yaml:"since"`
	// Until is when it ends by itself; left out if that is not known.
	Until *time.Time `json:"until,omitempty" yaml:"until,omitempty"`
}

// FactsOf returns the facts of a project. A quota is over by its time, without any event.
func FactsOf(s *forge.Summary, now time.Time) []Fact {
	list := []Fact{}
	if s.Project == nil { // a former version wrote it
		return list
	}
	for _, c := range s.Project.Closed {
		f := Fact{Fact: c.Reason, Of: c.Agent, Why: c.Message, Since: c.Since.UTC()}
		if !c.Until.IsZero() {
			if c.Until.Before(now) {
				continue
			}
			until := c.Until.UTC()
			f.Until = &until
		}
		list = append(list, f)
	}
	return list
}

// QueueState is how far a change in the merge queue is.
type QueueState string

// The states: a closed set.
const (
	// QueueMerging is the change whose merge is under way.
	QueueMerging QueueState = "merging"
	// QueueTrying is a change that is verified on top of those ahead, alone or,
	// as riding says of all but the last, with others.
	QueueTrying QueueState = "trying"
	QueueRiding QueueState = "riding"
	// QueuePassed is one that passed there, and is merged when those ahead are.
	QueuePassed QueueState = "passed"
	// QueueStopped is one that did not pass there: its merge finds out why.
	QueueStopped QueueState = "stopped"
	// QueueQueued is one that nothing is verified of yet.
	QueueQueued QueueState = "queued"
	// QueuePull is one that waits at its pull request.
	QueuePull QueueState = "pull_request"
)

// QueuedChange is a change in the merge queue.
type QueuedChange struct {
	Intent forge.IntentID `json:"intent" yaml:"intent"`
	Task   forge.TaskID   `json:"task"   yaml:"task"`
	// Position counts from 1, the one that is merged next; left out at a pull request.
	Position int        `json:"position,omitempty" yaml:"position,omitempty"`
	State    QueueState `json:"state"              yaml:"state"`
	// Words say for a person where it is, and what it waits for.
	Words string `json:"words" yaml:"words"`
	// On are the tasks whose changes it is verified on top of, With those of
	// them that the same run decides about.
	On   []forge.TaskID `json:"on,omitempty"   yaml:"on,omitempty"`
	With []forge.TaskID `json:"with,omitempty" yaml:"with,omitempty"`
	// Seconds is the estimate of when it is merged, from now on; left out where
	// nothing can be said.
	Seconds *int `json:"seconds,omitempty" yaml:"seconds,omitempty"`
}

// QueuedPull is the pull request of a task, as it was seen last.
type QueuedPull struct {
	Task   forge.TaskID    `json:"task"   yaml:"task"`
	Number int             `json:"number" yaml:"number"`
	State  forge.PullState `json:"state"  yaml:"state"`
	// URL is where people see it; left out where what the forge says is no address of the web.
	URL string `json:"url,omitempty" yaml:"url,omitempty"`
}

// QueueBasis has the medians that estimates are made of, in seconds: of the
// last trials, and of the last merges.
type QueueBasis struct {
	Trials       int     `json:"trials"        yaml:"trials"`
	TrialSeconds float64 `json:"trial_seconds" yaml:"trial_seconds"`
	Merges       int     `json:"merges"        yaml:"merges"`
	MergeSeconds float64 `json:"merge_seconds" yaml:"merge_seconds"`
}

// QueueShown bounds the changes of an answer to a request, and queueRefs the tasks that each names.
const (
	QueueShown = 200
	queueRefs  = 20
)

// Bound leaves out changes and parts of texts that an answer has no room for.
func (q *Queue) Bound() {
	for i := range q.Changes {
		c := &q.Changes[i]
		c.Words = short(c.Words)
		c.On, c.With = c.On[:min(len(c.On), queueRefs)], c.With[:min(len(c.With), queueRefs)]
	}
	for i := range q.Facts {
		q.Facts[i].Why = short(q.Facts[i].Why)
	}
	if extra := len(q.Changes) - QueueShown; extra > 0 {
		q.LeftOut += extra
		q.Changes = slices.Clip(q.Changes[:QueueShown])
	}
}
