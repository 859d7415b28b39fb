package document

import (
	"reflect"

	"github.com/pfl-forge/pfl-forge"
)

// Attributes are the fields that lists show as they were submitted. The fields are those
// of forge.Attributes, so one converts to the other.
type Attributes struct {
	Labels   []string `json:"labels,omitempty"   yaml:"labels,omitempty"`   // to find it by
	Priority int      `json:"priority,omitempty" yaml:"priority,omitempty"` // for people
	Team     string   `json:"team,omitempty"     yaml:"team,omitempty"`     // who it belongs to
}

// Values returns the attributes by their names in documents, in order.
func (a Attributes) Values() []Value { return valuesOf(reflect.ValueOf(a)) }

// Setter is a set of those who submit intents.
type Setter int

// The setters. Persons submit with pfl-forge create and drafts, Systems with messages.
const (
	Persons Setter = 1 << iota
	Systems

	Everybody = Persons | Systems
)

// Field is a field of an intent that can be set when the intent is submitted.
type Field struct {
	// Name is the field's key in drafts, in intents' files and in submissions.
	Name string
	// By says who may set it.
	By Setter
	// Of returns a pointer to the field of an intent: to a string, an int, a float64, a
	// []string, a []forge.IntentID, a map[string]string or a *forge.GoalOptions.
	Of func(*forge.Intent) any
	// Check returns why a text that was given is refused, empty if it is not. Of a list
	// it checks each entry. It is nil where forge.Intent.Validate knows everything.
	Check func(string) string
	// Hint says what to write instead of a refused value of a draft.
	Hint string
	// Max is the length of a text in bytes, of a list that of each entry; 0 for any.
	Max int
	// Words are the only values that a text can have; nil for any.
	Words []string
	// Edit sets the field of an edit. It is nil for fields that a person cannot change
	// in the intent's file; the others can be changed until the intent runs.
	Edit func(*forge.Edit, string)
	// Flag is the flag of pfl-forge create; without a name there is none.
	Flag Flag
	// Guide describes the field in the guide's table of drafts, and Absent what holds
	// without it. A field without a Guide is not part of a draft's front matter.
	Guide, Absent string
}

// Flag is a flag of the command line for a field.
type Flag struct {
	// Name is the long name without dashes, Short the letter; empty for none.
	Name, Short string
	// Help describes it. {agents} stands for the names of the agents.
	Help string
	// Commas says that a list may also be given as one value with commas.
	Commas bool
}

// Fields returns every field that can be set, in the order in which they are listed.
func Fields() []Field { return fields }

// FieldsBy returns the fields that one kind of setter may set.
func FieldsBy(by Setter) []Field {
	var list []Field
	for _, f := range fields {
		if f.By&by != 0 {
			list = append(list, f)
		}
	}
	return list
}

// Kind names the values of the field with an article, as errors do: "a whole number".
func (f *Field) Kind() string {
	switch f.Of(&forge.Intent{}).(type) {
	case *string:
		return "a string"
	case *int:
		return "a whole number"
	case *float64:
		return "a number"
	case *[]string, *[]forge.IntentID:
		return "a list of strings"
	case *map[string]string:
		return "an object with strings"
	default:
		return "an object"
	}
}

// Entries returns the texts of a field, for checks of each: its own, or those of a list.
func (f *Field) Entries(i *forge.Intent) (texts []string, list bool) {
	switch p := f.Of(i).(type) {
	case *string:
		return []string{*p}, false
	case *[]string:
		return *p, true
	case *[]forge.IntentID:
		return idTexts(*p), true
	default:
		return nil, false
	}
}

func idTexts[T ~string](list []T) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

var risks = []string{string(forge.RiskLow), string(forge.RiskMed), string(forge.RiskHigh)}

// fields is the table. Their order is that in which a refused submission lists them.
var fields = []Field{
	{
		Name: "title", By: Everybody, Of: func(i *forge.Intent) any { return &i.Title }, Check: CheckTitle, Max: forge.MaxTitle,
		Edit:  func(e *forge.Edit, s string) { e.Title = &s },
		Flag:  Flag{Name: "title", Short: "t", Help: "one line; default: the first line of the text, or the recipe's name"},
		Guide: "one line, at most 500 characters", Absent: "the first heading or line of the text",
	},
	{
		Name: "body", By: Everybody, Of: func(i *forge.Intent) any { return &i.Body }, Check: CheckText, Max: forge.MaxBody,
		Edit: func(e *forge.Edit, s string) { e.Body = &s },
		Flag: Flag{Name: "body", Short: "b", Help: "what should change, and why"},
	},
	{
		Name: "type", By: Everybody, Of: func(i *forge.Intent) any { return &i.Type }, Check: CheckType,
		Edit:  func(e *forge.Edit, s string) { e.Type = &s },
		Hint:  "such as feature, fix, refactor, test or audit",
		Flag:  Flag{Name: "type", Help: "feature, fix, refactor, test, audit, ...; default: chosen by the analysis"},
		Guide: "one lower-case word: `feature`, `fix`, `refactor`, `test`, ...", Absent: "judged by the analysis",
	},
	{
		Name: "risk", By: Everybody, Of: func(i *forge.Intent) any { return (*string)(&i.Risk) }, Check: CheckRisk, Words: risks,
		Edit:  func(e *forge.Edit, s string) { e.Risk = new(forge.Risk(s)) },
		Hint:  "omit it to let the analysis choose",
		Flag:  Flag{Name: "risk", Help: "low, med or high; default: chosen by the analysis"},
		Guide: "`low`, `med` or `high`; the higher of this and the judged one counts", Absent: "judged",
	},
	{
		// It cannot be chosen; systems and clients of people may repeat what holds anyway.
		Name: "source", By: Everybody, Of: func(i *forge.Intent) any { return (*string)(&i.Source) },
	},
	{
		Name: "depends_on", By: Everybody, Of: func(i *forge.Intent) any { return &i.DependsOn },
		Flag:  Flag{Name: "depends-on", Help: "`ids` of intents that must be done first", Commas: true},
		Guide: "ids of intents that have to be done before the implementation begins", Absent: "none",
	},
	{
		Name: "criteria", By: Everybody, Of: func(i *forge.Intent) any { return &i.Criteria }, Check: CheckText,
		Flag:  Flag{Name: "criterion", Help: "a `condition` that must hold in the end, which makes the intent a goal; may be repeated"},
		Guide: "what must hold in the end; makes it a [goal](guide-goals.md)", Absent: "none",
	},
	{
		Name: "goal", By: Persons, Of: func(i *forge.Intent) any { return &i.Goal },
		Guide: "[how a goal is worked on](guide-files.md#goals)", Absent: "the defaults",
	},
	{
		Name: "labels", By: Everybody, Of: func(i *forge.Intent) any { return &i.Labels }, Check: CheckLine, Max: forge.MaxName,
		Flag:  Flag{Name: "label", Help: "`labels` to find the intent by", Commas: true},
		Guide: "words to find it by, each one line of at most 100 bytes", Absent: "none",
	},
	{
		Name: "priority", By: Everybody, Of: func(i *forge.Intent) any { return &i.Priority },
		Flag:  Flag{Name: "priority", Help: "a number for people and scripts; pfl-forge sorts nothing by it"},
		Guide: "a number for people and scripts; pfl-forge sorts nothing by it", Absent: "0",
	},
	{
		Name: "team", By: Everybody, Of: func(i *forge.Intent) any { return &i.Team }, Check: CheckLine, Max: forge.MaxName,
		Flag:  Flag{Name: "team", Help: "the team that it belongs to"},
		Guide: "the team that it belongs to, at most 100 bytes; in `show` and in `-o json`", Absent: "none",
	},
	{
		Name: "agent", By: Everybody, Of: func(i *forge.Intent) any { return &i.Agent }, Check: CheckLine,
		Flag:   Flag{Name: "agent", Help: "the agent back end: {agents}, or one of the project's own"},
		Guide:  "`claude`, `codex`, `gemini`, `opencode`, `recipe`, or one of the project's own",
		Absent: "the recipe if there is one, else the project's `agent`",
	},
	{
		Name: "budget_usd", By: Everybody, Of: func(i *forge.Intent) any { return &i.BudgetUSD },
		Flag:  Flag{Name: "budget", Help: "spending limit for its agents, in `USD`"},
		Guide: "what its agents may cost in all", Absent: "`budget.intent_usd`",
	},
	{
		Name: "recipe", By: Everybody, Of: func(i *forge.Intent) any { return &i.Recipe }, Check: CheckLine,
		Flag:  Flag{Name: "recipe", Help: "`name` of a recipe of pfl-forge.yaml that makes the change"},
		Guide: "a recipe of `pfl-forge.yaml`", Absent: "the project's agent does it",
	},
	{
		Name: "with", By: Everybody, Of: func(i *forge.Intent) any { return &i.With },
		Flag:  Flag{Name: "with", Help: "`NAME=VALUE` of a parameter of the recipe; may be repeated"},
		Guide: "values for the recipe's parameters: `{NAME: value}`", Absent: "asked for",
	},
}
