package document

import (
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document/asked"
)

// Summary has the fields of an intent that every list shows, under the names that they
// have everywhere: State, which is published, and the lists of the command line embed it.
type Summary struct {
	Title string `json:"title" yaml:"title"`
	// Type is empty until it is judged.
	Type   string       `json:"type,omitempty" yaml:"type,omitempty"`
	Source forge.Source `json:"source"         yaml:"source"`
	// Risk is empty until it is judged.
	Risk   forge.Risk   `json:"risk,omitempty" yaml:"risk,omitempty"`
	Status forge.Status `json:"status"         yaml:"status"`
	// Waiting is the act of a person that it waits for.
	Waiting forge.Waiting `json:"waiting,omitempty" yaml:"waiting,omitempty"`
	// Reason says why it waits or failed.
	Reason string `json:"reason,omitempty" yaml:"reason,omitempty"`
	// Activity names the present work in words.
	Activity string `json:"activity,omitempty" yaml:"activity,omitempty"`
	// Plan is the hash that an approval has to name.
	Plan       string `json:"plan,omitempty" yaml:"plan,omitempty"`
	Attributes `yaml:",inline"`
	// Parent is the intent that it was split off from.
	Parent forge.IntentID `json:"parent,omitempty" yaml:"parent,omitempty"`
	Asking `yaml:",inline"`
	Totals `yaml:",inline"`
	// Goal is set of an intent with criteria.
	Goal      *GoalProgress `json:"goal,omitempty" yaml:"goal,omitempty"`
	CreatedAt time.Time     `json:"created_at"     yaml:"created_at"`
	// UpdatedAt is when something was last decided on it.
	UpdatedAt time.Time `json:"updated_at" yaml:"updated_at"`
}

// Asking says who asked for an intent, and who approved it.
type Asking struct {
	// Requester is the person or system that published it.
	Requester string `json:"requester,omitempty" yaml:"requester,omitempty"`
	// Requesters are the people whose words are in it.
	Requesters []Identity `json:"requesters,omitempty" yaml:"requesters,omitempty"`
	// Approver names the person whose approval was the last of enough.
	Approver string `json:"approver,omitempty" yaml:"approver,omitempty"`
	// Approvals are set while it waits for approval.
	Approvals *Approvals `json:"approvals,omitempty" yaml:"approvals,omitempty"`
}

// Identity is the name of a person.
type Identity struct {
	Name string `json:"name" yaml:"name"`
	// Proven is false where its sender claims it.
	Proven bool `json:"proven" yaml:"proven"`
}

// Approvals says how far an approval is that an intent waits for.
type Approvals struct {
	// Needed is how many different people have to approve.
	Needed int `json:"needed" yaml:"needed"`
	// Given are those who have.
	Given []string `json:"given" yaml:"given"`
	// Barred may not, having asked for it.
	Barred []string `json:"barred,omitempty" yaml:"barred,omitempty"`
}

// askingOf returns who asked for an intent, and who approved it. While it waits, those who
// have approved already are with the approvals, since they may not be enough.
func askingOf(s *forge.Summary) Asking {
	a := Asking{Requester: s.Requester}
	for _, r := range s.Requesters {
		a.Requesters = append(a.Requesters, Identity(r))
	}
	if s.Approval.Needed == 0 {
		a.Approver = strings.Join(s.Approval.By, ", ")
		return a
	}
	a.Approvals = &Approvals{s.Approval.Needed, append([]string{}, s.Approval.By...), s.Approval.Barred}
	return a
}

// AskedBy says for a person who asked: the publisher, then everyone whose words were added
// by a proven name, and in parentheses whom a sender only claims to speak for, such as
// "ci (claimed: bob)".
func (a *Asking) AskedBy() string {
	var also, claimed []string
	for _, r := range a.Requesters {
		switch {
		case r.Name == a.Requester:
		case r.Proven:
			also = append(also, r.Name)
		default:
			claimed = append(claimed, r.Name)
		}
	}
	text := strings.Join(append([]string{a.Requester}, also...), ", ")
	if len(claimed) > 0 {
		text += " (claimed: " + strings.Join(claimed, ", ") + ")"
	}
	return text
}

// Totals are the numbers of an intent's summary.
type Totals struct {
	// Run counts from 1; a retry is another one.
	Run       int `json:"run"        yaml:"run"`
	Tasks     int `json:"tasks"      yaml:"tasks"`
	TasksDone int `json:"tasks_done" yaml:"tasks_done"`
	// CostUSD is of the attempts of all runs that have ended.
	CostUSD float64 `json:"cost_usd" yaml:"cost_usd"`
}

// SummaryOf returns the summary of an intent. Texts are whole, and times in UTC.
func SummaryOf(s *forge.Summary) Summary {
	return Summary{
		Title: s.Title, Type: s.Type, Source: s.Source, Risk: s.Risk, Status: s.Status, Waiting: s.Waiting, Reason: s.Reason,
		Activity: s.Activity, Plan: s.Plan, Attributes: Attributes(s.Attributes), Parent: s.Parent, Asking: askingOf(s),
		Totals: Totals{s.Run, s.TaskCount, s.TasksDone, s.Usage.CostUSD},
		Goal:   GoalProgressOf(s.Goal), CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
}

// State is an intent as other systems see it, in the answers to list and with every
// published change.
type State struct {
	Project forge.ProjectID `json:"project"`
	Intent  forge.IntentID  `json:"intent"`
	Summary
}

// StateOf returns the state of an intent. Texts are cut to a bound.
func StateOf(s *forge.Summary) State {
	d := State{Project: s.Key.Project, Intent: s.Key.Intent, Summary: SummaryOf(s)}
	for _, text := range []*string{&d.Title, &d.Type, &d.Reason, &d.Activity, &d.Requester, &d.Approver} {
		*text = Cut(*text)
	}
	for i := range d.Requesters {
		d.Requesters[i].Name = Cut(d.Requesters[i].Name)
	}
	return d
}

// TaskState is a task of an intent in lists.
type TaskState struct {
	ID     forge.TaskID     `json:"id"     yaml:"id"`
	Title  string           `json:"title"  yaml:"title"`
	Status forge.TaskStatus `json:"status" yaml:"status"`
	// Detail says why it failed, or what it waits for.
	Detail string `json:"detail,omitempty" yaml:"detail,omitempty"`
	// Commit is the one that reached the base branch.
	Commit string `json:"commit,omitempty" yaml:"commit,omitempty"`
}

// IsCancelled reports whether a person cancelled the task. One that failed by
// itself is not, also where it was cancelled before.
func (t *TaskState) IsCancelled() bool {
	return t.Status == forge.TaskFailed && strings.HasPrefix(t.Detail, forge.CancelledByAPerson)
}

// Change is the data of a published event.
type Change struct {
	State
	Origin Origin `json:"origin"`
	// Task is the one that it is about, if it is about one.
	Task *TaskState `json:"task,omitempty"`
	Cause
}

// Cause says by whom or by which fact a change came about.
type Cause struct {
	// By is the person or system who asked for it, and Via the gateway that
	// they came through; empty if none did.
	By  string `json:"by,omitempty"`
	Via string `json:"via,omitempty"`
	// Words are those of a person who asks for changes of what waited for their approval.
	Words string `json:"words,omitempty"`
	// Questions are those that are asked, of an intent that waits for answers.
	Questions []Clarification `json:"questions,omitempty"`
	// Review is the one that asks for changes.
	Review *Review `json:"review,omitempty"`
	// Verify is the report of the commands that failed.
	Verify *Verified `json:"verify,omitempty"`
	// Comments are those that a system told of.
	Comments *asked.Comments `json:"comments,omitempty"`
	// Truncated names all that was cut: a change is far smaller than an answer.
	Truncated []Truncated `json:"truncated,omitempty"`
}

// causeBytes bounds a cause, as JSON: the stream of changes keeps those of a month.
const causeBytes = 8 << 10

// Bound cuts texts and lists that are too long to be published.
func (c *Cause) Bound() { c.Truncated, _ = fit(c, causeBytes) }

// Listed answers a request for a list.
type Listed struct {
	Intents []State `json:"intents"`
	// Next is the value of after that continues the list; empty at its end.
	Next forge.IntentID `json:"next,omitempty"`
}

// Detail answers a request for one intent.
type Detail struct {
	State
	Body      string           `json:"body"`
	Origin    Origin           `json:"origin"`
	DependsOn []forge.IntentID `json:"depends_on,omitempty"`
	Questions []Clarification  `json:"questions,omitempty"`
	TaskList  []TaskState      `json:"task_list,omitempty"`
	Work
}

// DetailOf returns the answer about an intent. Of what became of it, a page is
// told; of the rest, only the texts of its state are cut.
func DetailOf(v *forge.View, w Work, p Page) Detail {
	w.Bound(p)
	d := Detail{
		State: StateOf(&v.Summary), Body: v.Intent.Body, Origin: Origin(v.Intent.Origin),
		DependsOn: v.Intent.DependsOn, Work: w,
	}
	for _, c := range v.Intent.Clarifications {
		d.Questions = append(d.Questions, Clarification(c))
	}
	for i := range v.Tasks {
		t := &v.Tasks[i]
		d.TaskList = append(d.TaskList, TaskState{ID: t.ID, Title: t.Title, Status: t.Status, Detail: t.Failure, Commit: t.Commit})
	}
	return d
}

// maxPublished bounds each text that is published, in bytes.
const maxPublished = 4000

// Cut returns the beginning of a text that is too long to be published.
func Cut(s string) string {
	if len(s) <= maxPublished {
		return s
	}
	return strings.ToValidUTF8(s[:maxPublished], "") + "…"
}
