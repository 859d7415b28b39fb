package document

import (
	"cmp"
	"fmt"
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
	ID forge.IntentID `json:"id" yaml:"id"`

	document.Summary `yaml:",inline"`

	// Tokens and CachedTokens add up those of the attempts that have ended.
	Tokens       int64 `json:"tokens"        yaml:"tokens"`
	CachedTokens int64 `json:"cached_tokens" yaml:"cached_tokens"`

	// Children are the intents that were split off from this one.
	Children []Child `json:"children,omitempty" yaml:"children,omitempty"`

	// Failures explain the failures that the reason and the active tasks name.
	Failures []Failure `json:"failures,omitempty" yaml:"failures,omitempty"`

	// Active are the tasks under way, waiting or failed. Running are the attempts under
	// way with what they have used so far; only status looks for them.
	Active  []ActiveTask `json:"active,omitempty"  yaml:"active,omitempty"`
	Running []Attempt    `json:"running,omitempty" yaml:"running,omitempty"`
}

// ActiveTask is a task that is under way, waiting or failed.
type ActiveTask struct {
	document.TaskState `yaml:",inline"`

	Step    forge.Step `json:"step,omitempty"    yaml:"step,omitempty"`
	Attempt int        `json:"attempt,omitempty" yaml:"attempt,omitempty"`
	Paused  bool       `json:"paused,omitempty"  yaml:"paused,omitempty"`

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
		ID: s.Key.Intent, Summary: document.SummaryOf(s), Tokens: render.Fresh(&s.Usage), CachedTokens: render.Cached(&s.Usage), Failures: failuresOf(s),
	}
	for _, c := range s.Children {
		i.Children = append(i.Children, Child{ID: c.ID, Title: c.Title, Status: c.Status})
	}
	for _, t := range s.Tasks {
		task := ActiveTask{
			TaskState: document.TaskState{ID: t.ID, Title: t.Title, Status: t.Status, Detail: t.Detail},
			Step:      t.Step, Attempt: t.Attempt, Paused: t.Paused,
		}
		for _, o := range t.Overlaps {
			task.Overlaps = append(task.Overlaps, Overlap{o.TaskID, o.Files})
		}
		i.Active = append(i.Active, task)
	}
	return i
}

// Place fills in where tasks are in the merge queue, and what they wait for there, as the projects
// say. An intent does not know it: only its project knows the others. Both summaries are read one
// after the other, so a task that has been merged meanwhile may still be told its place of before.
func Place(projects []forge.Summary, list []Item) {
	for p := range projects {
		if projects[p].Project == nil {
			continue
		}
		for i := range list {
			for j := range list[i].Active {
				t := &list[i].Active[j]
				if place := projects[p].Project.Queue[string(t.ID)]; place != "" {
					t.Detail = place
				}
			}
		}
	}
}

// WaitsFor says what a task waits for; nothing if that is not known, or if it
// has failed: then its detail is the failure, which is told elsewhere.
func (t *ActiveTask) WaitsFor() string {
	if t.Status == forge.TaskFailed {
		return ""
	}
	return kit.Safe(render.FromNow(render.FirstLine(t.Detail), time.Now()))
}

// Clashes returns a line for each pair of tasks whose changes do not merge. Each of the two is told
// of the other, by its own worker, and the two need not be of one intent; a person is told once.
func Clashes(list []Item) (lines []string) {
	told := map[[2]forge.TaskID]bool{}
	for i := range list {
		for j := range list[i].Active {
			t := &list[i].Active[j]
			for _, o := range t.Overlaps {
				if pair := [2]forge.TaskID{min(t.ID, o.Task), max(t.ID, o.Task)}; !told[pair] {
					told[pair] = true
					lines = append(lines, fmt.Sprintf("%s conflicts with %s: %s", t.ID, o.Task, kit.Safe(strings.Join(o.Files, ", "))))
				}
			}
		}
	}
	return lines
}

// PausedWhole reports whether all of an intent is paused, and not only tasks of it.
func (i *Item) PausedWhole() bool { return i.Waiting == forge.WaitingPaused && i.Activity == "paused" }

// AsksFirst reports whether an intent waits for a person to let it be analyzed: there is
// no plan yet that could wait for approval, and the hash in its place is of the text.
func AsksFirst(s *forge.Summary) bool {
	return s.Waiting == forge.WaitingApproval && s.TaskCount == 0 && len(s.Children) == 0
}

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
	reason := kit.Safe(render.FromNow(render.FirstLine(i.Reason), time.Now()))
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
	case forge.WaitingPull:
		return cmp.Or(reason, "waits for you at its pull request")
	case forge.WaitingBudget:
		return kit.WithReason("waits for budget", reason)
	case forge.WaitingBase:
		return cmp.Or(reason, "waits for the base branch to pass")
	case forge.WaitingPaused:
		if strings.HasPrefix(reason, forge.AccountClosed) {
			return "no agent is called: " + reason
		}
		if strings.HasPrefix(reason, forge.OriginAway) || strings.HasPrefix(reason, forge.NoReplica) {
			return reason
		}
		return kit.WithReason("is paused", reason)
	case forge.WaitingFailed:
	}
	return kit.WithReason(string(i.Status), reason)
}
