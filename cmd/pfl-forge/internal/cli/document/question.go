package document

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// Question is a question to a person about an intent, as programs read it.
type Question struct {
	Number    int      `json:"number"              yaml:"number"` // counted from 1
	Question  string   `json:"question"            yaml:"question"`
	Context   string   `json:"context,omitempty"   yaml:"context,omitempty"`   // what to know for an answer
	Suggested []string `json:"suggested,omitempty" yaml:"suggested,omitempty"` // answers to choose from
	Answer    *string  `json:"answer"              yaml:"answer"`              // nil: it is open
}

// Questions returns every question of an intent, also those that are answered.
func Questions(i *forge.Intent) []Question {
	list := make([]Question, len(i.Clarifications))
	for n, c := range i.Clarifications {
		list[n] = Question{n + 1, c.Question, c.Context, c.SuggestedAnswers, c.Answer}
	}
	return list
}

// PrintQuestion prints a question after a prefix, with its answer or with those to choose
// from.
func PrintQuestion(a *kit.App, q *Question, by string) {
	fmt.Fprintf(a.Out, "%s%d. %s\n", by, q.Number, kit.Safe(q.Question))
	if q.Context != "" {
		fmt.Fprintln(a.Out, kit.Indent(kit.Safe(q.Context), by+"   "))
	}
	switch {
	case q.Answer != nil:
		fmt.Fprintf(a.Out, "%s   answer: %s\n", by, kit.Safe(*q.Answer))
	case len(q.Suggested) > 0:
		fmt.Fprintf(a.Out, "%s   for example: %s\n", by, kit.Safe(strings.Join(q.Suggested, ", ")))
	}
}
