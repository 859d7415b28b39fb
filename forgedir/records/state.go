package records

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	// Format is the version of this file's format.
	Format int `yaml:"format"`
	// Paused is set while a person pauses the whole project.
	Paused bool `yaml:"paused,omitempty"`
	// Intents are sorted by id.
	Intents []intentRow `yaml:"intents"`
}

// intentRow is an intent as lists show it.
type intentRow struct {
	ID     string `schema:"intent" yaml:"id"`
	Title  string `yaml:"title"`
	Type   string `schema:"type"   yaml:"type,omitempty"`
	Source string `schema:"Source" yaml:"source"`
	Risk   string `schema:"Risk"   yaml:"risk,omitempty"`
	Status string `schema:"Status" yaml:"status"`
	// Waiting is the act of a person that the intent waits for.
	Waiting string `schema:"Waiting" yaml:"waiting,omitempty"`
	// Reason says why the intent waits or failed.
	Reason string `yaml:"reason,omitempty"`
	// Activity names the present work in words.
	Activity            string `yaml:"activity,omitempty"`
	document.Attributes `yaml:",inline"`
	// Run counts from 1.
	Run int `yaml:"run,omitempty"`
	// Parent is the intent that this one was split off from.
	Parent string `schema:"intent" yaml:"parent,omitempty"`
	// Children are the intents that were split off from this one.
	Children []string `schema:"intent" yaml:"children,omitempty"`
	// Requester is the person or system that published the intent.
	Requester string `yaml:"requester,omitempty"`
	// Approver names the person who gave the last approval.
	Approver string `yaml:"approver,omitempty"`
	// Goal is the progress of an intent with criteria.
	Goal *goalRow `yaml:"goal,omitempty"`
	// Tasks are all tasks, also those that are done.
	Tasks     []taskRow `yaml:"tasks"`
	Usage     usageDoc  `yaml:",inline"`
	CreatedAt time.Time `yaml:"created_at"`
	// UpdatedAt is the time of the last decision.
	UpdatedAt time.Time `yaml:"updated_at"`
}

// goalRow is the progress of a goal, as lists show it.
type goalRow struct {
	// Iteration is the newest one, counted from 1 over all runs; 0: none yet.
	Iteration int `yaml:"iteration"`
	// Most is the number of iterations that this run may take.
	Most int `yaml:"most"`
	// Used counts the iterations that this run took.
	Used int `yaml:"used"`
	// Criteria is their number.
	Criteria int `yaml:"criteria"`
	// Met counts the criteria that the last judgment found met.
	Met int `yaml:"met"`
	// Status says how the goal ended.
	Status string `schema:"LoopStatus" yaml:"status,omitempty"`
}

func goalRowOf(g *forge.GoalSummary) *goalRow {
	if g == nil {
		return nil
	}
	return &goalRow{g.Iteration, g.Most, g.Used, g.Criteria, g.Met, string(g.Status)}
}

// taskRow is a task as lists show it.
type taskRow struct {
	ID     string `schema:"task"       yaml:"id"`
	Title  string `yaml:"title"`
	Status string `schema:"TaskStatus" yaml:"status"`
	// Step is the one under way.
	Step string `schema:"Step" yaml:"step,omitempty"`
	// Attempt is the implementation, counted from 1.
	Attempt int `yaml:"attempt,omitempty"`
	// Detail says why the task failed or waits.
	Detail string `yaml:"detail,omitempty"`
	// Paused is set while a person pauses the task.
	Paused bool `yaml:"paused,omitempty"`
	// Overlaps are tasks under way whose changes do not merge with those of this one.
	Overlaps []overlapDoc `yaml:"overlaps,omitempty"`
}

// overlapDoc is a task that another one does not merge with.
type overlapDoc struct {
	TaskID string `schema:"task" yaml:"task_id"`
	// Files are those in conflict.
	Files []string `yaml:"files"`
}

// intentRowOf makes a row of a summary, and of the tasks that files show. The summary has
// only the tasks that are under way, but knows more of these.
func intentRowOf(s *forge.Summary, tasks []taskRow) intentRow {
	d := intentRow{
		ID: string(s.Key.Intent), Title: s.Title, Type: s.Type, Source: string(s.Source), Risk: string(s.Risk),
		Status: string(s.Status), Waiting: string(s.Waiting), Reason: s.Reason, Activity: s.Activity,
		Attributes: document.Attributes(s.Attributes), Run: s.Run, Parent: string(s.Parent), Requester: s.Requester, Approver: strings.Join(s.Approval.By, ", "),
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

// taskRowOf returns a task as the file of the state has it.
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
