package document

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/document"
)

// Question is a question to a person about an intent, as programs read it.
type Question struct {
	Number int `json:"number" yaml:"number"` // counted from 1

	document.Clarification `yaml:",inline"`
}

// Questions returns every question of an intent, also those that are answered.
func Questions(i *forge.Intent) []Question {
	list := make([]Question, len(i.Clarifications))
	for n, c := range i.Clarifications {
		list[n] = Question{n + 1, document.Clarification(c)}
	}
	return list
}

// PrintQuestion prints a question after a prefix, with its answer or with those to choose
// from.
func PrintQuestion(a *kit.App, q *Question, by string) {
	fmt.Fprintf(a.Out, "%s%d. %s\n", by, q.Number, kit.Safe(q.Clarification.Question))
	if q.Context != "" {
		fmt.Fprintln(a.Out, kit.Indent(kit.Safe(q.Context), by+"   "))
	}
	switch {
	case q.Answer != nil:
		fmt.Fprintf(a.Out, "%s   answer: %s\n", by, kit.Safe(*q.Answer))
	case len(q.SuggestedAnswers) > 0:
		fmt.Fprintf(a.Out, "%s   for example: %s\n", by, kit.Safe(strings.Join(q.SuggestedAnswers, ", ")))
	}
}
