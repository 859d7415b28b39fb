package document

import (
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// State is an intent as other systems see it, in the answers to list and with every
// published change.
type State struct {
	Project  forge.ProjectID `json:"project"`
	Intent   forge.IntentID  `json:"intent"`
	Title    string          `json:"title"`
	Type     string          `json:"type,omitempty"`
	Source   forge.Source    `json:"source"`
	Risk     forge.Risk      `json:"risk,omitempty"`
	Status   forge.Status    `json:"status"`
	Waiting  forge.Waiting   `json:"waiting,omitempty"`  // the act of a person that it waits for
	Reason   string          `json:"reason,omitempty"`   // why it waits or failed
	Activity string          `json:"activity,omitempty"` // what goes on
	Plan     string          `json:"plan,omitempty"`     // the hash that an approval has to name
	Attributes
	Parent    forge.IntentID `json:"parent,omitempty"`
	Requester string         `json:"requester,omitempty"` // who wanted it
	Approver  string         `json:"approver,omitempty"`  // who approved it
	Totals
	Goal      *GoalState `json:"goal,omitempty"` // of an intent with criteria
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
}

// Totals are the numbers of an intent's state.
type Totals struct {
	Run       int     `json:"run"` // counted from 1; a retry is another one
	Tasks     int     `json:"tasks"`
	TasksDone int     `json:"tasks_done"`
	CostUSD   float64 `json:"cost_usd"` // of all runs
}

// StateOf returns the state of an intent. Texts are cut to a bound.
func StateOf(s *forge.Summary) State {
	return State{
		Project: s.Key.Project, Intent: s.Key.Intent, Title: Cut(s.Title), Type: Cut(s.Type), Source: s.Source, Risk: s.Risk,
		Status: s.Status, Waiting: s.Waiting, Reason: Cut(s.Reason), Activity: Cut(s.Activity), Plan: s.Plan,
		Attributes: Attributes(s.Attributes), Parent: s.Parent, Requester: Cut(s.Requester), Approver: Cut(s.Approver),
		Totals: Totals{s.Run, s.TaskCount, s.TasksDone, s.Usage.CostUSD},
		Goal:   goalStateOf(s.Goal), CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
}

// GoalState is how far a goal is, as other systems see it.
type GoalState struct {
	Criteria      int              `json:"criteria"`
	Met           int              `json:"met"`             // of the criteria, as the last judgment says
	Iteration     int              `json:"iteration"`       // the newest, counted from 1, over all runs
	Used          int              `json:"iterations_used"` // by this run
	MaxIterations int              `json:"max_iterations"`
	Status        forge.LoopStatus `json:"status,omitempty"` // how the loop ended
}

func goalStateOf(g *forge.GoalSummary) *GoalState {
	if g == nil {
		return nil
	}
	return &GoalState{Criteria: g.Criteria, Met: g.Met, Iteration: g.Iteration, Used: g.Used, MaxIterations: g.Most, Status: g.Status}
}

// TaskState is a task as other systems see it.
type TaskState struct {
	ID     forge.TaskID     `json:"id"`
	Title  string           `json:"title"`
	Status forge.TaskStatus `json:"status"`
	Detail string           `json:"detail,omitempty"` // why it failed
}

// Change is the data of a published event.
type Change struct {
	State
	Origin Origin     `json:"origin"`
	Task   *TaskState `json:"task,omitempty"` // with task-done and task-failed
}

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
	Labels    []string         `json:"labels,omitempty"`
	Questions []Clarification  `json:"questions,omitempty"`
	TaskList  []TaskState      `json:"task_list,omitempty"`
}

// DetailOf returns the answer about an intent. Only the texts of its state are cut.
func DetailOf(v *forge.View) Detail {
	d := Detail{
		State: StateOf(&v.Summary), Body: v.Intent.Body, Origin: Origin(v.Intent.Origin),
		DependsOn: v.Intent.DependsOn, Labels: v.Intent.Labels,
	}
	for _, c := range v.Intent.Clarifications {
		d.Questions = append(d.Questions, Clarification(c))
	}
	for i := range v.Tasks {
		t := &v.Tasks[i]
		d.TaskList = append(d.TaskList, TaskState{ID: t.ID, Title: t.Title, Status: t.Status, Detail: t.Failure})
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
