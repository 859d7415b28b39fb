package retry

import (
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Long is after how many answers in a row that no replica can do a step a
// person hears of it: by rule.Patience that is 45 seconds.
const Long = 2

// Patience returns for how long replicas may leave an attempt to one another
// before they answer that none can do it; 0 by rules that do not know that
// answer, which a runner that is rolled back to them cannot read.
func (c *Counter) Patience(by rules.Version) time.Duration {
	if !by.Has(rules.PatientSteps) {
		return 0
	}
	return rule.Patience(c.Waits)
}

// Lacking returns the first of the open attempts of whose step so many answers in a
// row say that no replica can do it, and its counter; an empty one if there is none.
func Lacking(open []forge.Attempt, of func(forge.Attempt) *Counter, answers int) (forge.Attempt, Counter) {
	for _, a := range open {
		if c := of(a); c.Waits >= answers {
			return a, *c
		}
	}
	return forge.Attempt{}, Counter{}
}

// Unable says, to be added to a text, when and why no replica could do an open
// attempt; empty if that is not known of any, or is told already.
func Unable(open []forge.Attempt, of func(forge.Attempt) *Counter, known bool) string {
	a, c := Lacking(open, of, 1)
	if known || c.Waits == 0 {
		return ""
	}
	return fmt.Sprintf("; no replica could do %s at %s UTC: %s", a.Step, c.At.UTC().Format(time.DateTime), c.Why)
}
