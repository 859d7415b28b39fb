package workspace

import (
	"bytes"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// intentDoc is intents/<id>.yaml. The order of the fields is that of the file.
type intentDoc struct {
	Title          string             `yaml:"title"`
	Body           string             `yaml:"body"`
	Type           string             `yaml:"type"`
	Source         string             `yaml:"source"`
	Risk           string             `yaml:"risk"`
	Status         string             `yaml:"status"`
	Waiting        string             `yaml:"waiting,omitempty"`
	Reason         string             `yaml:"reason,omitempty"`
	Parent         *string            `yaml:"parent"`
	DependsOn      []string           `yaml:"depends_on,omitempty"`
	Criteria       []string           `yaml:"criteria,omitempty"`
	Labels         []string           `yaml:"labels,omitempty"`
	Priority       int                `yaml:"priority,omitempty"`
	Agent          string             `yaml:"agent,omitempty"`
	BudgetUSD      float64            `yaml:"budget_usd,omitempty"`
	Recipe         string             `yaml:"recipe,omitempty"`
	With           map[string]string  `yaml:"with,omitempty"`
	Origin         *originDoc         `yaml:"origin,omitempty"`
	CreatedAt      time.Time          `yaml:"created_at"`
	Clarifications []clarificationDoc `yaml:"clarifications"`
	Tasks          []string           `yaml:"tasks,omitempty"`
	Plan           string             `yaml:"plan,omitempty"`     // what an approval approves
	Revision       int64              `yaml:"revision,omitempty"` // of this version; last, so that a torn copy has none
}

type originDoc struct {
	System  string `yaml:"system"`
	EventID string `yaml:"event_id"`
	Actor   string `yaml:"actor,omitempty"`
}

type clarificationDoc struct {
	Question         string   `yaml:"question"`
	Context          string   `yaml:"context,omitempty"`
	SuggestedAnswers []string `yaml:"suggested_answers,omitempty"`
	Param            string   `yaml:"param,omitempty"`
	Answer           *string  `yaml:"answer"`
}

func intentDocOf(v *forge.View) intentDoc {
	i := &v.Intent
	d := intentDoc{
		Title: i.Title, Body: i.Body, Type: i.Type, Source: string(i.Source), Risk: string(i.Risk),
		Status: string(v.Summary.Status), Waiting: string(v.Summary.Waiting), Reason: v.Summary.Reason,
		DependsOn: texts(i.DependsOn), Criteria: i.Criteria, Labels: i.Labels, Priority: i.Priority,
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
