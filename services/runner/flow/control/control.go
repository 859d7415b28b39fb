// Package control decides what a person may ask of an intent. The answer is data:
// Table has, for what is asked and where the intent is, whether that is allowed,
// refused or ignored, and with which words. testdata/table.txt shows all of it as a
// grid.
package control

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Phase is where a run of an intent stands.
type Phase string

// The phases.
const (
	// None is before the intent was submitted.
	None Phase = ""
	// Admission waits for the project to admit the run.
	Admission Phase = "admission"
	// Analyzing waits for the analysis or what takes its place, or for a timer to
	// repeat it.
	Analyzing Phase = "analyzing"
	// Asking waits for the answers of a person.
	Asking Phase = "asking"
	// Approval waits for a person to approve the plan.
	Approval Phase = "approval"
	// OverBudget waits for a person, because there is no budget to analyze it.
	OverBudget Phase = "over-budget"
	// Depending waits for other intents.
	Depending Phase = "depending"
	// Working has tasks under way.
	Working Phase = "working"
	// Children has child intents under way.
	Children Phase = "children"
	// Closed is over. What failed can be retried.
	Closed Phase = "closed"
)

// Place is a phase as a person sees it. Most phases are one place; working has five, by
// what waits for the person, and closed has four, by how the intent ended.
type Place string

// The places, apart from those that are phases.
const (
	Waiting   Place = "waiting"  // working, and a task waits for a person's files or for budget
	Guarded   Place = "guarded"  // working, and a change waits for a person's approval
	Disputed  Place = "disputed" // working, and the reviewers of a change disagree, so a person decides
	Blocked   Place = "blocked"  // working, and an agent waits for a person's answer
	Failed    Place = "failed"
	Done      Place = "done"
	Rejected  Place = "rejected"
	Cancelled Place = "cancelled"
)

// Places lists all places, in the order in which an intent comes by.
func Places() []Place {
	return []Place{
		Place(Admission), Place(Analyzing), Place(Asking), Place(Approval), Place(OverBudget), Place(Depending),
		Place(Working), Waiting, Guarded, Disputed, Blocked, Place(Children), Failed, Done, Rejected, Cancelled,
	}
}

// Verb is one kind of request by a person.
type Verb string

// The verbs.
const (
	Edit       Verb = "edit"
	Approve    Verb = "approve"
	Change     Verb = "request changes"
	Reject     Verb = "reject"
	Answer     Verb = "answer"
	Retry      Verb = "retry"
	Cancel     Verb = "cancel"
	CancelTask Verb = "cancel a task"
	Pause      Verb = "pause"
	Resume     Verb = "resume"
	ResumeTask Verb = "resume a task"
)

// Row says what is answered to a verb in some places.
type Row struct {
	// Verb selects the row, together with In.
	Verb Verb
	// In are the places that the row is for.
	In []Place
	// Decision is Applied where the verb is allowed.
	Decision forge.Decision
	// Words say why it is not. {status}, {phase} and {task} are filled in.
	Words string
}

var (
	proposed = []Place{Place(Admission), Place(Analyzing), Place(Asking), Place(Approval), Place(OverBudget)}
	atWork   = []Place{Place(Working), Waiting, Guarded, Disputed, Blocked}
	closed   = []Place{Failed, Done, Rejected, Cancelled}
	anywhere = Places()
)

// Table answers every verb in every place. The first row that fits counts.
var Table = []Row{
	{Edit, proposed, forge.Applied, ""},
	{Edit, anywhere, forge.Refused, "the intent is {status}; it can be edited only while it is proposed"},

	{Approve, []Place{Place(Approval), Guarded}, forge.Applied, ""},
	{Approve, proposed, forge.Refused, "there is no plan to approve yet; the intent is {phase}"},
	{Approve, anywhere, forge.Refused, "the intent is {status} and does not wait for approval"},

	// Reviewers may disagree about one change while another one waits for something else.
	{Change, []Place{Place(Approval), Waiting, Guarded, Disputed}, forge.Applied, ""},
	{Change, proposed, forge.Refused, "there is no plan to change yet; the intent is {phase}"},
	{Change, anywhere, forge.Refused, "the intent is {status} and does not wait for approval: there is nothing to ask changes of"},

	{Reject, []Place{Place(Asking), Place(Approval), Guarded, Disputed, Blocked, Failed}, forge.Applied, ""},
	{Reject, []Place{Rejected}, forge.Ignored, "the intent is rejected already"},
	{Reject, closed, forge.Refused, "the intent is {status} already"},
	{Reject, anywhere, forge.Refused, "the intent is {status} and does not wait for a person; use cancel to stop it"},

	// While one task waits for something else, another one may ask.
	{Answer, []Place{Place(Asking), Waiting, Guarded, Disputed, Blocked}, forge.Applied, ""},
	{Answer, anywhere, forge.Refused, "the intent is {status} and does not wait for an answer"},

	{Retry, []Place{Place(Approval), Place(OverBudget), Waiting, Guarded, Disputed, Failed}, forge.Applied, ""},
	{Retry, []Place{Blocked}, forge.Refused, "the intent waits for an answer; give it first: pfl-forge answer"},
	{Retry, anywhere, forge.Refused, "the intent is {status}; only what failed, or waits for you, can be retried"},

	{Cancel, []Place{Cancelled}, forge.Ignored, "the intent is cancelled already"},
	{Cancel, []Place{Done, Rejected}, forge.Refused, "the intent is {status} already"},
	{Cancel, anywhere, forge.Applied, ""},

	{CancelTask, atWork, forge.Applied, ""},
	{CancelTask, anywhere, forge.Refused, "the intent is {status}; a task can be cancelled only while tasks are in progress"},

	{Pause, closed, forge.Refused, "the intent is {status} already"},
	{Pause, anywhere, forge.Applied, ""},

	{Resume, closed, forge.Refused, "the intent is {status} already"},
	{Resume, anywhere, forge.Applied, ""},

	{ResumeTask, closed, forge.Refused, "task {task} is not paused"},
	{ResumeTask, anywhere, forge.Applied, ""},
}

// Find returns the row for a verb in a place.
func Find(v Verb, in Place) Row {
	i := slices.IndexFunc(Table, func(r Row) bool { return r.Verb == v && slices.Contains(r.In, in) })
	if i < 0 {
		return Row{Verb: v, Decision: forge.Refused, Words: "this version does not know this request"}
	}
	return Table[i]
}

// Intent is where an intent is, as far as a person's acts go.
type Intent struct {
	// Phase is where its run stands.
	Phase Phase
	// Status is the coarse form of the phase that people see.
	Status forge.Status
	// Guarded says that a change waits for a person's approval.
	Guarded bool
	// Waiting says that a task waits for a person's files or for budget.
	Waiting bool
	// Disputed says that a change waits for a person's word because its reviewers disagree.
	Disputed bool
	// Blocked says that the agent of a task waits for a person's answer.
	Blocked bool
}

// Place returns the place of the intent in the table.
func (s *Intent) Place() Place {
	switch {
	case s.Phase == Closed && s.Status.Failed():
		return Failed
	case s.Phase == Closed:
		return Place(s.Status)
	case s.Phase == Working && s.Guarded:
		return Guarded
	case s.Phase == Working && s.Waiting:
		return Waiting
	case s.Phase == Working && s.Disputed:
		return Disputed
	case s.Phase == Working && s.Blocked:
		return Blocked
	}
	return Place(s.Phase)
}

// Check returns whether a verb is allowed. Where it is not, the error says why, in
// the words of the table.
func (s *Intent) Check(v Verb, task string) (forge.Decision, error) {
	r := Find(v, s.Place())
	if r.Decision == forge.Applied {
		return forge.Applied, nil
	}
	words := strings.NewReplacer("{status}", string(s.Status), "{phase}", string(s.Phase), "{task}", strconv.Quote(task)).Replace(r.Words)
	return r.Decision, errors.New(words)
}

// Personal reports whether an event is a wish about a project, or about an intent that exists.
func Personal(ev *forge.Event) bool {
	switch ev.Message.(type) {
	case *forge.Edit, *forge.Approve, *forge.RequestChanges, *forge.Reject, *forge.Answer, *forge.Retry, *forge.Cancel, *forge.Pause, *forge.Resume,
		*forge.Reflect, *forge.Teach, *forge.SetSchedules, *forge.PauseSchedule:
		return true
	default:
		return false
	}
}
