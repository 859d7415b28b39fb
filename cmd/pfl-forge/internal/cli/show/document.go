package show

import (
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goalview"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	model "github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/asked"
)

// Intent is everything about an intent, as programs read it.
// Fields that are empty are left out, but for the texts and lists that every intent has.
type Intent struct {
	document.Item `yaml:",inline"`

	// Trace is that of the newest run.
	document.Trace `yaml:",inline"`

	// Told is the account that every reader gets.
	Account `yaml:",inline"`

	// What was asked for, as it was asked for.
	Body      string              `json:"body"                 yaml:"body"`
	DependsOn []forge.IntentID    `json:"depends_on,omitempty" yaml:"depends_on,omitempty"`
	Agent     string              `json:"agent,omitempty"      yaml:"agent,omitempty"`
	Recipe    string              `json:"recipe,omitempty"     yaml:"recipe,omitempty"`
	With      map[string]string   `json:"with,omitempty"       yaml:"with,omitempty"`
	Criteria  []string            `json:"criteria,omitempty"   yaml:"criteria,omitempty"`
	Loop      *goalview.Document  `json:"loop,omitempty"       yaml:"loop,omitempty"` // nil if it is no goal
	Questions []document.Question `json:"questions,omitempty"  yaml:"questions,omitempty"`

	// What became of it.
	Work         []Task          `json:"work"                   yaml:"work"`
	Runs         []runDetail     `json:"runs,omitempty"         yaml:"runs,omitempty"`         // those that are finished
	Observations []string        `json:"observations,omitempty" yaml:"observations,omitempty"` // what agents noticed
	Audit        *document.Audit `json:"audit,omitempty"        yaml:"audit,omitempty"`
	Commands     []string        `json:"commands,omitempty"     yaml:"commands,omitempty"` // what a person can do while it waits
}

// Account is the account of the work that every reader gets, as package document
// has it; here it is whole. Durations are in seconds, costs in US dollars.
type Account struct {
	Verified    []model.Verified   `json:"verify,omitempty"      yaml:"verify,omitempty"`      // each time that a change was verified
	Steps       []model.StepRecord `json:"steps,omitempty"       yaml:"steps,omitempty"`       // every attempt that has ended
	Costs       []model.Cost       `json:"costs,omitempty"       yaml:"costs,omitempty"`       // of these, added up by step, agent and model
	Adjustments []model.Adjustment `json:"adjustments,omitempty" yaml:"adjustments,omitempty"` // which rules changed the course
	Decisions   []model.Decided    `json:"decisions,omitempty"   yaml:"decisions,omitempty"`   // what people and systems asked for, and through whom
	Text        *asked.Text        `json:"text,omitempty"        yaml:"text,omitempty"`        // whether it was edited where it came from
}

// setAccount fills in how the intent was carried out.
// Tasks of the account that the view does not have are passed over.
func (d *Intent) setAccount(w *model.Work) {
	d.Account = Account{w.Verified, w.Steps, w.Costs, w.Adjustments, w.Decisions, w.Text}
	for i := range d.Work {
		for k := range w.PlanTasks {
			if w.PlanTasks[k].ID == d.Work[i].ID {
				d.Work[i].made(&w.PlanTasks[k].Product)
			}
		}
	}
}

// runDetail is a finished run of an intent.
type runDetail struct {
	Run     int           `json:"run"              yaml:"run"`
	Outcome forge.Outcome `json:"outcome"          yaml:"outcome"`
	Reason  string        `json:"reason,omitempty" yaml:"reason,omitempty"`

	// Adjustments are the changes of the flow, each the name of its rule with a task and
	// details.
	Adjustments []string `json:"adjustments,omitempty" yaml:"adjustments,omitempty"`

	// adjusted has the same, for a page that leaves details out.
	adjusted []forge.Adjustment

	// Steps counts the attempts that ended in the run.
	Steps int       `json:"steps" yaml:"steps"`
	At    time.Time `json:"at"    yaml:"at"`
}

// intentOf returns the document of an intent, without the iterations of a goal.
// It reads nothing but the view. The commands are there only while the intent waits for a person.
func intentOf(v *forge.View) Intent {
	d := Intent{
		Item: document.ItemOf(&v.Summary), Body: v.Intent.Body, DependsOn: v.Intent.DependsOn,
		Agent: v.Intent.Agent, Recipe: v.Intent.Recipe, With: v.Intent.With,
		Criteria: v.Intent.Criteria, Questions: document.Questions(&v.Intent), Work: []Task{},
	}
	d.PlanChildren(v)
	for i := range v.Tasks {
		d.Work = append(d.Work, TaskOf(v, &v.Tasks[i]))
	}
	for i := range v.History {
		h := &v.History[i]
		r := runDetail{Run: h.Run, Outcome: h.Outcome, Reason: h.FailureReason, Steps: len(h.StepResults), At: h.CreatedAt, adjusted: h.Adjustments}
		for _, adj := range h.Adjustments {
			r.Adjustments = append(r.Adjustments, strings.TrimSpace(adj.Rule+" "+string(adj.TaskID)+" "+adj.Detail))
		}
		d.Runs = append(d.Runs, r)
	}
	for i := range v.Observations {
		d.Observations = append(d.Observations, v.Observations[i].Content)
	}
	if v.Audit != nil {
		report := document.AuditOf(v)
		d.Audit = &report
	}
	if pending.Waits(&v.Summary) {
		d.Commands = pending.Commands(&v.Summary)
	}
	return d
}
