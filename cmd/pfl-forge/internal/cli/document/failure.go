package document

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Failure is a reason for which attempts fail, explained.
type Failure struct {
	Reason  forge.FailureReason `json:"reason"  yaml:"reason"`
	Meaning string              `json:"meaning" yaml:"meaning"`
	Do      string              `json:"do"      yaml:"do"` // what a person can do
}

// failuresOf returns the reasons that an intent and its tasks name for having failed, each
// once. An intent that can still succeed by itself has none.
func failuresOf(s *forge.Summary) []Failure {
	texts := []string{s.Reason}
	for i := range s.Tasks {
		texts = append(texts, s.Tasks[i].Detail)
	}
	if s.Waiting == forge.WaitingBudget {
		texts = append(texts, string(forge.FailBudget))
	}
	if s.Waiting != forge.WaitingFailed && s.Waiting != forge.WaitingBudget {
		return nil // it is on its way, and may yet succeed
	}
	var list []Failure
	for _, text := range texts {
		if f, ok := FailureOf(text); ok && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// FailureOf returns the reason that a text about a failure begins with; false if it names
// none.
func FailureOf(text string) (Failure, bool) {
	r, ok := render.ReasonOf(text)
	return Failure{r.Name, r.Meaning, r.Do}, ok
}

// String returns the reason, what it means and what to do, in a line.
func (f Failure) String() string { return fmt.Sprintf("%s: %s; %s", f.Reason, f.Meaning, f.Do) }
