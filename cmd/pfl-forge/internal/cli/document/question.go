package document

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// Question is a clarification, as programs read it.
type Question struct {
	Number    int      `json:"number"              yaml:"number"` // counted from 1
	Question  string   `json:"question"            yaml:"question"`
	Context   string   `json:"context,omitempty"   yaml:"context,omitempty"`
	Suggested []string `json:"suggested,omitempty" yaml:"suggested,omitempty"`
	Answer    *string  `json:"answer"              yaml:"answer"`
}

func Questions(i *forge.Intent) []Question {
	list := make([]Question, len(i.Clarifications))
	for n, c := range i.Clarifications {
		list[n] = Question{n + 1, c.Question, c.Context, c.SuggestedAnswers, c.Answer}
	}
	return list
}

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
