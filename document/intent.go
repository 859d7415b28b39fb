package document

import (
	"reflect"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Settings are how an intent is to be worked on and found, as it was submitted.
type Settings struct {
	Attributes `yaml:",inline"`
	Agent      string            `json:"agent,omitempty"      yaml:"agent,omitempty"`                            // the back end, if not the project's
	BudgetUSD  float64           `json:"budget_usd,omitempty" yaml:"budget_usd,omitempty"`                       // bounds its cost, if not the project's
	Recipe     string            `json:"recipe,omitempty"     yaml:"recipe,omitempty"`                           // a recipe of pfl-forge.yaml
	With       map[string]string `json:"with,omitempty"       schema:"scalar"             yaml:"with,omitempty"` // values of the recipe's parameters
}

// SettingsOf returns the settings of an intent.
func SettingsOf(i *forge.Intent) Settings {
	return Settings{Attributes(i.Attributes), i.Agent, i.BudgetUSD, i.Recipe, i.With}
}

func (s *Settings) set(i *forge.Intent) {
	i.Attributes, i.Agent, i.BudgetUSD, i.Recipe, i.With = forge.Attributes(s.Attributes), s.Agent, s.BudgetUSD, s.Recipe, s.With
}

// Draft is the front matter of intent-drafts/<id>.md. Every key may be left out.
type Draft struct {
	Title     string       `yaml:"title,omitempty"`                                // one line; without it the first line of the text
	Type      string       `schema:"type"             yaml:"type,omitempty"`       // such as feature, fix, refactor, test, audit; judged if left out
	Risk      string       `schema:"Risk"             yaml:"risk,omitempty"`       // at least this; judged if left out
	Criteria  []Criterion  `yaml:"criteria,omitempty"`                             // what has to hold in the end; makes it a goal
	Goal      *GoalOptions `yaml:"goal,omitempty"`                                 // how the criteria are reached
	DependsOn []string     `schema:"intent"           yaml:"depends_on,omitempty"` // what has to be done before: names of files, without .md
	Settings  `yaml:",inline"`
}

// Intent returns the intent that a draft describes, with the fields of the front matter
// only.
func (d *Draft) Intent() forge.Intent {
	i := forge.Intent{Settings: forge.Settings{Title: d.Title, Type: d.Type, Risk: forge.Risk(d.Risk), Goal: d.Goal.Options()}}
	i.Criteria, i.Checks = Criteria(d.Criteria)
	for _, id := range d.DependsOn {
		i.DependsOn = append(i.DependsOn, forge.IntentID(id))
	}
	d.set(&i)
	return i
}

// Intent is intents/<id>.yaml. The order of the fields is that of the file. A person may
// edit title, body, type and risk while the intent is proposed, answer questions, and set
// status to approved. The tag edit says how an edit of a field is treated:
//
//	own     it has rules of its own
//	goal    it was said for good when the goal was submitted
//	itself  it changes by itself
//	-       it is fixed
type Intent struct {
	Title          string `edit:"own"              yaml:"title"`                            // one line
	Body           string `edit:"own"              yaml:"body"`                             // what should change, and why
	Type           string `edit:"own"              schema:"type"               yaml:"type"` // such as feature, fix, audit; empty until it is judged
	Source         string `schema:"Source"         yaml:"source"`                           // where it comes from
	Risk           string `edit:"own"              schema:"Risk"               yaml:"risk"` // the higher of the declared and the judged one
	Condition      `yaml:",inline"`
	Family         `yaml:",inline"`
	DependsOn      []string     `schema:"intent"         yaml:"depends_on,omitempty"` // what has to be done before
	Criteria       []Criterion  `edit:"goal"             yaml:"criteria,omitempty"`   // what has to hold in the end
	Goal           *GoalOptions `edit:"goal"             yaml:"goal,omitempty"`       // how the criteria are reached
	Settings       `yaml:",inline"`
	Origin         *Origin         `yaml:"origin,omitempty"`                                                    // who published it
	Requester      string          `edit:"itself"           yaml:"requester,omitempty"`                         // who wanted it
	Approver       string          `edit:"itself"           yaml:"approver,omitempty"`                          // who approved it
	CreatedAt      time.Time       `yaml:"created_at"`                                                          // when it was submitted
	Clarifications []Clarification `edit:"own"              yaml:"clarifications"`                              // questions; one without an answer makes it wait
	Tasks          []string        `edit:"itself"           schema:"task"               yaml:"tasks,omitempty"` // what it was made of
	Plan           string          `edit:"itself"           yaml:"plan,omitempty"`                              // what an approval approves
	Revision       int64           `edit:"own"              yaml:"revision,omitempty"`                          // last, so that a torn copy has none
}

// Condition is how far the intent of a file is.
type Condition struct {
	Status  string `edit:"own"    schema:"Status"         yaml:"status"`            // may be set to approved when it waits for approval
	Waiting string `edit:"itself" schema:"Waiting"        yaml:"waiting,omitempty"` // what it waits for a person to do
	Reason  string `edit:"itself" yaml:"reason,omitempty"`                          // why it waits or failed
}

// Family names the intents above and below the intent of a file.
type Family struct {
	Parent     *string  `schema:"intent"             yaml:"parent"`                             // the intent that it is a part of
	Depth      int      `yaml:"depth,omitempty"`                                                // how many parents are above it
	Generation int      `yaml:"generation,omitempty"`                                           // reflections between it and the intent of a person or system
	Children   []string `edit:"itself"               schema:"intent" yaml:"children,omitempty"` // its parts
}

// Origin names the publisher of an intent. Files always have system and event_id.
type Origin struct {
	System  string `json:"system,omitempty"   yaml:"system"`          // the publisher
	EventID string `json:"event_id,omitempty" yaml:"event_id"`        // the publisher's own name of it; the same one is never a second intent
	Actor   string `json:"actor,omitempty"    yaml:"actor,omitempty"` // the person or account behind it
}

// Clarification is a question about an intent; without an answer it waits for one.
type Clarification struct {
	Question         string   `json:"question"                    yaml:"question"`                    // what has to be known
	Context          string   `json:"context,omitempty"           yaml:"context,omitempty"`           // what one should know to answer it
	SuggestedAnswers []string `json:"suggested_answers,omitempty" yaml:"suggested_answers,omitempty"` // others are allowed
	Param            string   `json:"-"                           yaml:"param,omitempty"`             // recipe parameter that the answer fills

	Answer *string `json:"answer,omitempty" schema:"scalar" yaml:"answer"` // null: no answer yet; write it here

	Task forge.TaskID `json:"task,omitempty" schema:"task" yaml:"task,omitempty"` // whose agent waits for the answer; empty: the whole intent does
}

// IntentOf returns the file of an intent, without a revision.
func IntentOf(v *forge.View) Intent {
	i, s := &v.Intent, &v.Summary
	d := Intent{
		Title: i.Title, Body: i.Body, Type: i.Type, Source: string(i.Source), Risk: string(i.Risk),
		Condition: Condition{string(s.Status), string(s.Waiting), s.Reason},
		Family:    Family{Depth: i.Depth, Generation: i.Generation}, DependsOn: idTexts(i.DependsOn),
		Criteria: CriteriaOf(i.Criteria, i.Checks), Goal: GoalOptionsOf(i.Goal), Settings: SettingsOf(i), Requester: s.Requester, Approver: askingOf(s).Approver,
		CreatedAt: i.CreatedAt.UTC(), Clarifications: []Clarification{}, Plan: s.Plan,
	}
	if d.Status == "" {
		d.Status = string(i.Status)
	}
	if i.Parent != "" {
		d.Parent = new(string(i.Parent))
	}
	if i.Origin != (forge.Origin{}) {
		d.Origin = new(Origin(i.Origin))
	}
	for _, c := range i.Clarifications {
		d.Clarifications = append(d.Clarifications, Clarification(c))
	}
	for _, child := range s.Children {
		d.Children = append(d.Children, string(child.ID))
	}
	for n := range v.Tasks {
		d.Tasks = append(d.Tasks, string(v.Tasks[n].ID))
	}
	return d
}

// Texts returns the fields that a person may edit, by their keys.
func (d *Intent) Texts() map[string]string {
	return map[string]string{"title": d.Title, "body": d.Body, "type": d.Type, "risk": d.Risk}
}

// The values of the tag edit; without one a field is fixed.
const (
	EditOwn    = "own"
	EditGoal   = "goal"
	EditItself = "itself"
)

// Value is a field of an intent's file.
type Value struct {
	// Name is the key.
	Name string
	// Edit is the tag that says how an edit of it is treated.
	Edit string
	// Value is its content.
	Value any
}

// Values returns every field of the file, in the order of the file.
func (d *Intent) Values() []Value { return valuesOf(reflect.ValueOf(*d)) }

// valuesOf returns the fields of a struct by their names in documents, in order, with those of
// structs that are written inline.
func valuesOf(v reflect.Value) (list []Value) {
	for f, value := range v.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			list = append(list, valuesOf(value)...)
			continue
		}
		list = append(list, Value{name, f.Tag.Get("edit"), value.Interface()})
	}
	return list
}
