package document

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/document"
)

// Item is an intent in a list, as programs read it: who wants what, how far it is, and
// what it used.
type Item struct {
	ID    forge.IntentID `json:"id"             yaml:"id"`
	Title string         `json:"title"          yaml:"title"`
	Type  string         `json:"type,omitempty" yaml:"type,omitempty"`

	Status forge.Status `json:"status"         yaml:"status"`
	Risk   forge.Risk   `json:"risk,omitempty" yaml:"risk,omitempty"` // empty until it is judged
	Source forge.Source `json:"source"         yaml:"source"`

	// Requester asked for it, and Approver approved of its plan or of its change.
	Requester string `json:"requester,omitempty" yaml:"requester,omitempty"`
	Approver  string `json:"approver,omitempty"  yaml:"approver,omitempty"`

	// Parent is the intent that this one was split off from; Children are those that were
	// split off from this one.
	Parent   forge.IntentID `json:"parent,omitempty"   yaml:"parent,omitempty"`
	Children []Child        `json:"children,omitempty" yaml:"children,omitempty"`

	document.Attributes `yaml:",inline"`

	Progress `yaml:",inline"`

	// Tokens and CostUSD add up the attempts that have ended.
	Tokens  int64   `json:"tokens"   yaml:"tokens"`
	CostUSD float64 `json:"cost_usd" yaml:"cost_usd"`

	CreatedAt time.Time `json:"created_at" yaml:"created_at"`
	UpdatedAt time.Time `json:"updated_at" yaml:"updated_at"` // when something was last decided on it
}

// Progress is the part of Item that changes while an intent is worked on.
type Progress struct {
	Run int `json:"run" yaml:"run"` // counted from 1; each retry begins another one

	// Waiting names the decision or act of a person that the intent waits for; empty if it
	// waits for none.
	// Reason says why, or why it ended as it did, and Failures what the failures that it
	// names mean.
	Waiting  forge.Waiting `json:"waiting,omitempty"  yaml:"waiting,omitempty"`
	Reason   string        `json:"reason,omitempty"   yaml:"reason,omitempty"`
	Failures []Failure     `json:"failures,omitempty" yaml:"failures,omitempty"`

	// Activity describes in words for a person what goes on.
	Activity string `json:"activity,omitempty" yaml:"activity,omitempty"`

	// Plan is the hash of the plan that approve --plan names; empty before there is one.
	Plan      string `json:"plan,omitempty" yaml:"plan,omitempty"`
	Tasks     int    `json:"tasks"          yaml:"tasks"`
	TasksDone int    `json:"tasks_done"     yaml:"tasks_done"`

	Goal *GoalProgress `json:"goal,omitempty" yaml:"goal,omitempty"` // nil if it has no criteria

	// Active are the tasks under way, waiting or failed. Running are the attempts under
	// way with what they have used so far; only status looks for them.
	Active  []ActiveTask `json:"active,omitempty"  yaml:"active,omitempty"`
	Running []Attempt    `json:"running,omitempty" yaml:"running,omitempty"`
}

// ActiveTask is a task that is under way, waiting or failed.
type ActiveTask struct {
	ID      forge.TaskID     `json:"id"                yaml:"id"`
	Title   string           `json:"title"             yaml:"title"`
	Status  forge.TaskStatus `json:"status"            yaml:"status"`
	Step    forge.Step       `json:"step,omitempty"    yaml:"step,omitempty"`
	Attempt int              `json:"attempt,omitempty" yaml:"attempt,omitempty"`
	Detail  string           `json:"detail,omitempty"  yaml:"detail,omitempty"`
	Paused  bool             `json:"paused,omitempty"  yaml:"paused,omitempty"`

	Overlaps []Overlap `json:"overlaps,omitempty" yaml:"overlaps,omitempty"`
}

// Overlap is another task under way whose change does not merge with this one's, and the
// files in which.
type Overlap struct {
	Task  forge.TaskID `json:"task"  yaml:"task"`
	Files []string     `json:"files" yaml:"files"`
}

// ItemOf returns the item of an intent. Running is left empty.
func ItemOf(s *forge.Summary) Item {
	i := Item{
		ID: s.Key.Intent, Title: s.Title, Type: s.Type, Status: s.Status, Risk: s.Risk, Source: s.Source,
		Requester: s.Requester, Approver: s.Approver, Parent: s.Parent, Attributes: document.Attributes(s.Attributes),
		Progress: Progress{
			Run: s.Run, Waiting: s.Waiting, Reason: s.Reason, Failures: failuresOf(s), Activity: s.Activity, Plan: s.Plan,
			Tasks: s.TaskCount, TasksDone: s.TasksDone, Goal: GoalProgressOf(s.Goal),
		},
		Tokens: s.Usage.InputTokens + s.Usage.OutputTokens, CostUSD: s.Usage.CostUSD,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	for _, c := range s.Children {
		i.Children = append(i.Children, Child{ID: c.ID, Title: c.Title, Status: c.Status})
	}
	for _, t := range s.Tasks {
		task := ActiveTask{ID: t.ID, Title: t.Title, Status: t.Status, Step: t.Step, Attempt: t.Attempt, Detail: t.Detail, Paused: t.Paused}
		for _, o := range t.Overlaps {
			task.Overlaps = append(task.Overlaps, Overlap{o.TaskID, o.Files})
		}
		i.Active = append(i.Active, task)
	}
	return i
}

// PausedWhole reports whether all of an intent is paused, and not only tasks of it.
func (i *Item) PausedWhole() bool { return i.Waiting == forge.WaitingPaused && i.Activity == "paused" }

// Items returns the items of intents, in their order.
func Items(all []forge.Summary) []Item {
	list := make([]Item, len(all))
	for i := range all {
		list[i] = ItemOf(&all[i])
	}
	return list
}

// TaskPaused reports whether one of an intent's tasks is paused, by itself or with the
// intent.
func TaskPaused(all []forge.TaskSummary, id forge.TaskID) bool {
	return slices.ContainsFunc(all, func(t forge.TaskSummary) bool { return t.ID == id && t.Paused })
}

// HowToResume returns a line that says that a task of an intent is paused, and how it goes
// on.
func HowToResume(i *Item, id forge.TaskID) string {
	if i.PausedWhole() {
		return "paused with its intent"
	}
	return "paused; next: pfl-forge resume " + string(id)
}

// Why returns in a line why an intent waits for a person, such as "needs your
// approval (high risk): it touches the login".
func (i *Item) Why() string {
	reason := kit.Safe(i.Reason)
	switch i.Waiting {
	case forge.WaitingApproval:
		text := "needs your approval"
		if i.Risk != "" && !strings.Contains(reason, "risk") {
			text += " (" + render.Risk(i.Risk) + ")"
		}
		return kit.WithReason(text, reason)
	case forge.WaitingClarification:
		return cmp.Or(reason, "needs your answers")
	case forge.WaitingDirty:
		return kit.WithReason("waits for your files", reason)
	case forge.WaitingBudget:
		return kit.WithReason("waits for budget", reason)
	case forge.WaitingPaused:
		return kit.WithReason("is paused", reason)
	case forge.WaitingFailed:
	}
	return kit.WithReason(string(i.Status), reason)
}
