package records

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// stateFormat is the version of the format of state.yaml.
const stateFormat = 2

// stateHead returns the first lines of state.yaml.
func stateHead(paused bool) string {
	if paused {
		return fmt.Sprintf("format: %d\npaused: true\nintents:", stateFormat)
	}
	return fmt.Sprintf("format: %d\nintents:", stateFormat)
}

// StateDoc is the content of state.yaml: every intent and its tasks at a glance.
type StateDoc struct {
	Format  int         `yaml:"format"`           // of this file
	Paused  bool        `yaml:"paused,omitempty"` // all of it, by a person
	Intents []intentRow `yaml:"intents"`          // sorted by id
}

// intentRow is an intent as lists show it.
type intentRow struct {
	ID                  string `schema:"intent"            yaml:"id"`
	Title               string `yaml:"title"`
	Type                string `schema:"type"              yaml:"type,omitempty"`
	Source              string `schema:"Source"            yaml:"source"`
	Risk                string `schema:"Risk"              yaml:"risk,omitempty"`
	Status              string `schema:"Status"            yaml:"status"`
	Waiting             string `schema:"Waiting"           yaml:"waiting,omitempty"` // what it waits for a person to do
	Reason              string `yaml:"reason,omitempty"`                             // why it waits or failed
	Activity            string `yaml:"activity,omitempty"`                           // what goes on
	document.Attributes `yaml:",inline"`
	Run                 int       `yaml:"run,omitempty"`                                 // from 1
	Parent              string    `schema:"intent"            yaml:"parent,omitempty"`   // the intent that it is a part of
	Children            []string  `schema:"intent"            yaml:"children,omitempty"` // its parts
	Requester           string    `yaml:"requester,omitempty"`                           // who wanted it
	Approver            string    `yaml:"approver,omitempty"`                            // who approved it
	Goal                *goalRow  `yaml:"goal,omitempty"`                                // how far it is, if it is one
	Tasks               []taskRow `yaml:"tasks"`                                         // all of them
	Usage               usageDoc  `yaml:",inline"`
	CreatedAt           time.Time `yaml:"created_at"`
	UpdatedAt           time.Time `yaml:"updated_at"` // when something was decided last
}

// goalRow is the progress of a goal, as lists show it.
type goalRow struct {
	Iteration int    `yaml:"iteration"`                            // the newest, from 1, over all runs; 0: none yet
	Most      int    `yaml:"most"`                                 // iterations that this run may take
	Used      int    `yaml:"used"`                                 // of them
	Criteria  int    `yaml:"criteria"`                             // how many there are
	Met       int    `yaml:"met"`                                  // of them, as the last judgment says
	Status    string `schema:"LoopStatus" yaml:"status,omitempty"` // how it ended
}

func goalRowOf(g *forge.GoalSummary) *goalRow {
	if g == nil {
		return nil
	}
	return &goalRow{g.Iteration, g.Most, g.Used, g.Criteria, g.Met, string(g.Status)}
}

// taskRow is a task as lists show it.
type taskRow struct {
	ID       string       `schema:"task"             yaml:"id"`
	Title    string       `yaml:"title"`
	Status   string       `schema:"TaskStatus"       yaml:"status"`
	Step     string       `schema:"Step"             yaml:"step,omitempty"` // under way
	Attempt  int          `yaml:"attempt,omitempty"`                        // the implementation, from 1
	Detail   string       `yaml:"detail,omitempty"`                         // why it failed or waits
	Paused   bool         `yaml:"paused,omitempty"`                         // by a person
	Overlaps []overlapDoc `yaml:"overlaps,omitempty"`                       // tasks under way that it does not merge with
}

// overlapDoc is a task that another one does not merge with.
type overlapDoc struct {
	TaskID string   `schema:"task" yaml:"task_id"`
	Files  []string `yaml:"files"` // in conflict
}

// intentRowOf makes a row of a summary, and of the tasks that files show. The summary has
// only the tasks that are under way, but knows more of these.
func intentRowOf(s *forge.Summary, tasks []taskRow) intentRow {
	d := intentRow{
		ID: string(s.Key.Intent), Title: s.Title, Type: s.Type, Source: string(s.Source), Risk: string(s.Risk),
		Status: string(s.Status), Waiting: string(s.Waiting), Reason: s.Reason, Activity: s.Activity,
		Attributes: document.Attributes(s.Attributes), Run: s.Run, Parent: string(s.Parent), Requester: s.Requester, Approver: s.Approver,
		Goal: goalRowOf(s.Goal), Tasks: []taskRow{}, Usage: usageDoc(s.Usage),
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
	for _, child := range s.Children {
		d.Children = append(d.Children, string(child.ID))
	}
	rows := map[string]taskRow{}
	for _, t := range tasks {
		rows[t.ID] = t
	}
	for i := range s.Tasks {
		t := taskRowOf(&s.Tasks[i])
		rows[t.ID] = t
	}
	for _, t := range rows {
		d.Tasks = append(d.Tasks, t)
	}
	slices.SortFunc(d.Tasks, func(a, b taskRow) int { return cmp.Or(len(a.ID)-len(b.ID), cmp.Compare(a.ID, b.ID)) })
	return d
}

func taskRowOf(t *forge.TaskSummary) taskRow {
	row := taskRow{
		ID: string(t.ID), Title: t.Title, Status: string(t.Status), Step: string(t.Step),
		Attempt: t.Attempt, Detail: t.Detail, Paused: t.Paused,
	}
	for _, o := range t.Overlaps {
		row.Overlaps = append(row.Overlaps, overlapDoc{string(o.TaskID), o.Files})
	}
	return row
}
