package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// item is an intent in a list, as programs read it.
type item struct {
	ID        forge.IntentID `json:"id"                  yaml:"id"`
	Title     string         `json:"title"               yaml:"title"`
	Type      string         `json:"type,omitempty"      yaml:"type,omitempty"`
	Status    forge.Status   `json:"status"              yaml:"status"`
	Risk      forge.Risk     `json:"risk,omitempty"      yaml:"risk,omitempty"`
	Source    forge.Source   `json:"source"              yaml:"source"`
	Requester string         `json:"requester,omitempty" yaml:"requester,omitempty"`
	Approver  string         `json:"approver,omitempty"  yaml:"approver,omitempty"`
	Parent    forge.IntentID `json:"parent,omitempty"    yaml:"parent,omitempty"`
	Children  []child        `json:"children,omitempty"  yaml:"children,omitempty"`
	Priority  int            `json:"priority,omitempty"  yaml:"priority,omitempty"`
	Run       int            `json:"run"                 yaml:"run"`
	Waiting   forge.Waiting  `json:"waiting,omitempty"   yaml:"waiting,omitempty"`
	Reason    string         `json:"reason,omitempty"    yaml:"reason,omitempty"`
	Failures  []failure      `json:"failures,omitempty"  yaml:"failures,omitempty"`
	Activity  string         `json:"activity,omitempty"  yaml:"activity,omitempty"`
	Plan      string         `json:"plan,omitempty"      yaml:"plan,omitempty"`
	Tasks     int            `json:"tasks"               yaml:"tasks"`
	TasksDone int            `json:"tasks_done"          yaml:"tasks_done"`
	Goal      *goalShort     `json:"goal,omitempty"      yaml:"goal,omitempty"`
	Active    []active       `json:"active,omitempty"    yaml:"active,omitempty"`
	Running   []running      `json:"running,omitempty"   yaml:"running,omitempty"` // only of status
	Tokens    int64          `json:"tokens"              yaml:"tokens"`
	CostUSD   float64        `json:"cost_usd"            yaml:"cost_usd"`
	CreatedAt time.Time      `json:"created_at"          yaml:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"          yaml:"updated_at"`
}

// child is a part of an intent.
type child struct {
	ID     forge.IntentID `json:"id"     yaml:"id"`
	Title  string         `json:"title"  yaml:"title"`
	Status forge.Status   `json:"status" yaml:"status"` // empty: it has not begun

	Body      string           `json:"body,omitempty"       yaml:"body,omitempty"`
	Risk      forge.Risk       `json:"risk,omitempty"       yaml:"risk,omitempty"` // as the plan judges it
	DependsOn []forge.IntentID `json:"depends_on,omitempty" yaml:"depends_on,omitempty"`
}

// planParts adds to an intent's parts what is planned for them.
func (i *item) planParts(v *forge.View) {
	for k := range i.Children {
		for n := range v.Parts {
			if p := &v.Parts[n]; p.ID == i.Children[k].ID {
				i.Children[k].Body, i.Children[k].Risk, i.Children[k].DependsOn = p.Body, p.Risk, p.DependsOn
			}
		}
	}
}

// overlap is another task whose change does not merge as it is.
type overlap struct {
	Task  forge.TaskID `json:"task"  yaml:"task"`
	Files []string     `json:"files" yaml:"files"`
}

// active is a task that is under way, waiting or failed.
type active struct {
	ID      forge.TaskID     `json:"id"                yaml:"id"`
	Title   string           `json:"title"             yaml:"title"`
	Status  forge.TaskStatus `json:"status"            yaml:"status"`
	Step    forge.Step       `json:"step,omitempty"    yaml:"step,omitempty"`
	Attempt int              `json:"attempt,omitempty" yaml:"attempt,omitempty"`
	Detail  string           `json:"detail,omitempty"  yaml:"detail,omitempty"`
	Paused  bool             `json:"paused,omitempty"  yaml:"paused,omitempty"`

	Overlaps []overlap `json:"overlaps,omitempty" yaml:"overlaps,omitempty"`
}

func itemOf(s *forge.Summary) item {
	i := item{
		ID: s.Key.Intent, Title: s.Title, Type: s.Type, Status: s.Status, Risk: s.Risk, Source: s.Source,
		Requester: s.Requester, Approver: s.Approver, Parent: s.Parent, Priority: s.Priority, Run: s.Run,
		Waiting: s.Waiting, Reason: s.Reason, Activity: s.Activity, Plan: s.Plan,
		Tasks: s.TaskCount, TasksDone: s.TasksDone, Goal: goalShortOf(s.Goal),
		Tokens: s.Usage.InputTokens + s.Usage.OutputTokens, CostUSD: s.Usage.CostUSD,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	i.Failures = failuresOf(s)
	for _, c := range s.Children {
		i.Children = append(i.Children, child{ID: c.ID, Title: c.Title, Status: c.Status})
	}
	for _, t := range s.Tasks {
		task := active{ID: t.ID, Title: t.Title, Status: t.Status, Step: t.Step, Attempt: t.Attempt, Detail: t.Detail, Paused: t.Paused}
		for _, o := range t.Overlaps {
			task.Overlaps = append(task.Overlaps, overlap{o.TaskID, o.Files})
		}
		i.Active = append(i.Active, task)
	}
	return i
}

// pausedWhole says whether all of an intent is paused, not only tasks of it.
func (i *item) pausedWhole() bool { return i.Waiting == forge.WaitingPaused && i.Activity == "paused" }

func items(all []forge.Summary) []item {
	list := make([]item, len(all))
	for i := range all {
		list[i] = itemOf(&all[i])
	}
	return list
}

func sortSummaries(all []forge.Summary) {
	slices.SortFunc(all, func(a, b forge.Summary) int { return strings.Compare(string(a.Key.Intent), string(b.Key.Intent)) })
}

// safe returns a text of others for a terminal, its lines kept.
func safe(s string) string { return strings.TrimRight(term.Sanitize(s), "\n") }

// indent puts every line of a text under another one.
func indent(s, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by)
}
