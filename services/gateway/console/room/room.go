// Package room counts how much of a page everything takes that a decision about a request is about.
package room

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/concealed"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/visible"
)

// Of returns about how many bytes of a page a request takes, with the list of its hidden parts and
// with its plan: what a person has to have on one page before the buttons of a decision are shown
// there.
//
// The request's own text counts as visible.Size has it, with characters that cannot be seen as the
// longer words that stand for them. Everything of a plan that is shown counts: texts, lists, files
// that are written, child intents.
func Of(d *document.Detail, hidden []concealed.Finding) int {
	n := visible.Size(d.Body) + visible.Size(fmt.Sprint(hidden))
	for i := range d.PlanTasks {
		t := &d.PlanTasks[i]
		lines := slices.Concat(t.Requirements, t.Steps, t.Files)
		// Each entry of a list is an element of the page, and its mark-up counts as 20 bytes.
		n += visible.Size(t.Title) + visible.Size(t.Plan) + visible.Size(strings.Join(lines, "\n")) + 20*len(lines)
		if t.Write != nil {
			n += visible.Size(t.Write.Path) + visible.Size(t.Write.Content)
		}
	}
	for _, a := range d.Asked {
		if a.Name != "body" {
			n += visible.Size(strings.Join(a.Texts, "\n"))
		}
	}
	for i := range d.Parts {
		n += visible.Size(d.Parts[i].Title) + visible.Size(d.Parts[i].Body)
	}
	return n
}
