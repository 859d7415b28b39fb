package look

import (
	"fmt"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/concealed"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
	"github.com/pfl-forge/pfl-forge/services/gateway/proposed"
)

// A person approves what they see. Our comment shows all that an approval by its hash
// is of: the plan, or, before there is one, the request. Both come with the hash in
// one answer of the runner. A plan is approved for its request, so that is shown with
// it, and what the page of the issue does not show of it is listed besides. What does
// not fit, or has a secret in it, is decided on elsewhere, and the hash is not here.

const (
	// maxPlan, maxRequest and maxList bound the plan, the request and the list
	// of what is hidden, in bytes of the comment.
	maxPlan    = 20 << 10
	maxRequest = 12 << 10
	maxList    = 8 << 10
)

// writeApproval writes all that an approval is of, and how it is given.
func writeApproval(b *strings.Builder, s *seen, secrets *redact.Redactor) {
	d := s.intent
	if d.Status != forge.StatusProposed {
		fmt.Fprintf(b, "\nIt is about changes that were made already, which are not shown here. Look at them in the console or with `pfl-forge show %s --diff`, "+
			"where their hash is, and approve there, or here with a comment: `/forge approve <hash>`\n", d.Intent)
		return
	}
	// quote writes words of others so that every character can be seen, and
	// reports whether all of them are there.
	quote := func(words string, limit int) bool {
		quoted, whole := intake.QuoteWhole(words, secrets, limit)
		b.WriteString(quoted)
		return whole
	}
	planned := proposed.IsPlanned(d)
	if hidden := concealed.In(d.Title, d.Body); len(hidden) > 0 {
		lines := make([]string, len(hidden))
		for i, one := range hidden {
			lines[i] = one.String()
		}
		b.WriteString("\n**The request has text that its page does not show, and agents get:**\n\n")
		quote(strings.Join(lines, "\n"), maxList) // all of it is in the request below
	}
	b.WriteString("\nThe request, with all that is in it:\n\n")
	whole := quote(proposed.Request(d), maxRequest) && proposed.IsWhole(d)
	if planned {
		b.WriteString("\nThe plan:\n\n")
		whole = quote(proposed.Plan(d), maxPlan) && whole
	}
	if !whole {
		fmt.Fprintf(b, "\nNot all that is approved is shown here. Read all of it in the console or with `pfl-forge show %s`, "+
			"where its hash is, and approve there, or here with a comment: `/forge approve <hash>`\n", d.Intent)
		return
	}
	fmt.Fprintf(b, "\nApprove with a comment: `/forge approve %s`\n", d.Plan)
	if planned {
		fmt.Fprintf(b, "\nOr ask for changes: `/forge changes %s <text>`\n", d.Plan)
	}
}
