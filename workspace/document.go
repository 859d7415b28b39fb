package workspace

import (
	"bytes"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// intentDoc is intents/<id>.yaml. The order of the fields is that of the file. A
// person may edit title, body, type and risk while the intent is proposed, answer
// questions, and set status to approved.
type intentDoc struct {
	Title          string             `yaml:"title"`                                            // one line
	Body           string             `yaml:"body"`                                             // what should change, and why
	Type           string             `schema:"type"               yaml:"type"`                 // such as feature, fix, audit; empty until it is judged
	Source         string             `schema:"Source"             yaml:"source"`               // where it comes from
	Risk           string             `schema:"Risk"               yaml:"risk"`                 // the highest of what was declared and judged
	Status         string             `schema:"Status"             yaml:"status"`               // may be set to approved when it waits for approval
	Waiting        string             `schema:"Waiting"            yaml:"waiting,omitempty"`    // what it waits for a person to do
	Reason         string             `yaml:"reason,omitempty"`                                 // why it waits or failed
	Parent         *string            `schema:"intent"             yaml:"parent"`               // the intent that it is a part of
	Depth          int                `yaml:"depth,omitempty"`                                  // how many parents are above it
	Generation     int                `yaml:"generation,omitempty"`                             // reflections between it and what somebody wanted
	Children       []string           `schema:"intent"             yaml:"children,omitempty"`   // its parts
	DependsOn      []string           `schema:"intent"             yaml:"depends_on,omitempty"` // what has to be done before
	Criteria       []string           `yaml:"criteria,omitempty"`                               // what has to hold in the end
	Goal           *goalDoc           `yaml:"goal,omitempty"`                                   // how the criteria are reached
	Labels         []string           `yaml:"labels,omitempty"`                                 // for people
	Priority       int                `yaml:"priority,omitempty"`                               // for people
	Agent          string             `yaml:"agent,omitempty"`                                  // the back end, if not the project's
	BudgetUSD      float64            `yaml:"budget_usd,omitempty"`                             // the most that it may cost, if not the project's
	Recipe         string             `yaml:"recipe,omitempty"`                                 // a recipe of pfl-forge.yaml
	With           map[string]string  `schema:"scalar"             yaml:"with,omitempty"`       // values of the recipe's parameters
	Origin         *originDoc         `yaml:"origin,omitempty"`                                 // who published it
	Requester      string             `yaml:"requester,omitempty"`                              // who wanted it
	Approver       string             `yaml:"approver,omitempty"`                               // who approved it
	CreatedAt      time.Time          `yaml:"created_at"`                                       // when it was submitted
	Clarifications []clarificationDoc `yaml:"clarifications"`                                   // questions; one without an answer makes it wait
	Tasks          []string           `schema:"task"               yaml:"tasks,omitempty"`      // what it was made of
	Plan           string             `yaml:"plan,omitempty"`                                   // what an approval approves
	Revision       int64              `yaml:"revision,omitempty"`                               // of this version; last, so that a torn copy has none
}

// originDoc is who published an intent.
type originDoc struct {
	System  string `yaml:"system"`          // the publisher
	EventID string `yaml:"event_id"`        // the publisher's own name of it; the same one is never a second intent
	Actor   string `yaml:"actor,omitempty"` // the person or account behind it
}

// clarificationDoc is a question.
type clarificationDoc struct {
	Question         string   `yaml:"question"`                                  // what has to be known
	Context          string   `yaml:"context,omitempty"`                         // what one should know to answer it
	SuggestedAnswers []string `yaml:"suggested_answers,omitempty"`               // others are allowed
	Param            string   `yaml:"param,omitempty"`                           // the recipe's parameter that the answer fills
	Answer           *string  `schema:"scalar"                    yaml:"answer"` // null: not answered yet; write the answer here
}

func intentDocOf(v *forge.View) intentDoc {
	i := &v.Intent
	d := intentDoc{
		Title: i.Title, Body: i.Body, Type: i.Type, Source: string(i.Source), Risk: string(i.Risk),
		Status: string(v.Summary.Status), Waiting: string(v.Summary.Waiting), Reason: v.Summary.Reason,
		DependsOn: texts(i.DependsOn), Criteria: i.Criteria, Goal: goalDocOf(i.Goal), Labels: i.Labels, Priority: i.Priority,
		Agent: i.Agent, BudgetUSD: i.BudgetUSD, Recipe: i.Recipe, With: i.With,
		CreatedAt: i.CreatedAt.UTC(), Clarifications: []clarificationDoc{}, Plan: v.Summary.Plan,
	}
	if d.Status == "" {
		d.Status = string(i.Status)
	}
	if i.Parent != "" {
		d.Parent = new(string(i.Parent))
	}
	if i.Origin != (forge.Origin{}) {
		d.Origin = &originDoc{i.Origin.System, i.Origin.EventID, i.Origin.Actor}
	}
	for _, c := range i.Clarifications {
		d.Clarifications = append(d.Clarifications, clarificationDoc{c.Question, c.Context, c.SuggestedAnswers, c.Param, c.Answer})
	}
	d.Depth, d.Generation = i.Depth, i.Generation
	d.Requester, d.Approver = v.Summary.Requester, v.Summary.Approver
	for _, child := range v.Summary.Children {
		d.Children = append(d.Children, string(child.ID))
	}
	for i := range v.Tasks {
		d.Tasks = append(d.Tasks, string(v.Tasks[i].ID))
	}
	return d
}

// decodeIntent reads an intent's file.
func decodeIntent(data []byte) (intentDoc, *strictyaml.Positions, error) {
	var d intentDoc
	pos, err := strictyaml.Decode(data, &d, strictyaml.Options{MaxBytes: maxIntentBytes})
	return d, pos, err
}

// encodeIntent writes an intent's file as it is written from a view.
func encodeIntent(d intentDoc) ([]byte, error) {
	revision := d.Revision
	d.Revision = 0
	content, err := strictyaml.Encode(d)
	return withRevision(content, revision), err
}

// withRevision completes the encoding of an intent without a revision.
func withRevision(content []byte, revision int64) []byte {
	return fmt.Appendf(bytes.Clone(content), "revision: %d\n", revision)
}

// splitRevision undoes withRevision; ok is false if data did not come from it.
func splitRevision(data []byte) (content []byte, revision int64, ok bool) {
	i := bytes.LastIndex(data, []byte("\nrevision: "))
	if i < 0 {
		return nil, 0, false
	}
	if _, err := fmt.Sscanf(string(data[i:]), "\nrevision: %d\n", &revision); err != nil {
		return nil, 0, false
	}
	content = data[:i+1]
	return content, revision, bytes.Equal(withRevision(content, revision), data)
}

func texts[T ~string](list []T) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}
