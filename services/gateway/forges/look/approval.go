package look

import (
	"fmt"
	"slices"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/concealed"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
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
	planned := len(d.PlanTasks)+len(d.Parts) > 0
	if hidden := concealed.In(d.Title, d.Body); len(hidden) > 0 {
		lines := make([]string, len(hidden))
		for i, one := range hidden {
			lines[i] = one.String()
		}
		b.WriteString("\n**The request has text that its page does not show, and agents get:**\n\n")
		quote(strings.Join(lines, "\n"), maxList) // all of it is in the request below
	}
	whole := len(d.Asked) > 0
	if planned {
		whole = d.Goal == nil // its criteria are approved as well, and are not in the plan
	}
	b.WriteString("\nThe request, with all that is in it:\n\n")
	whole = quote(requestOf(d), maxRequest) && whole
	if planned {
		b.WriteString("\nThe plan:\n\n")
		whole = quote(planOf(d), maxPlan) && !isCut(d) && whole
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

// isCut reports whether the runner left something of the plan out of its answer.
func isCut(d *document.Detail) bool {
	return slices.ContainsFunc(d.Truncated, func(t document.Truncated) bool {
		return strings.HasPrefix(t.Field, "work") || strings.HasPrefix(t.Field, "parts")
	})
}

// planOf returns the plan as text: all that its hash is of.
func planOf(d *document.Detail) string {
	var b strings.Builder
	for i := range d.PlanTasks {
		t := &d.PlanTasks[i]
		fmt.Fprintf(&b, "Task %d: %s\n", i+1, t.Title)
		if t.Item != "" {
			fmt.Fprintf(&b, "For: %s\n", t.Item)
		}
		if t.Plan != "" {
			fmt.Fprintf(&b, "%s\n", t.Plan)
		}
		for n, step := range t.Steps {
			fmt.Fprintf(&b, "%d. %s\n", n+1, step)
		}
		for n, r := range t.Requirements {
			fmt.Fprintf(&b, "Has to hold, %d: %s\n", n+1, r)
		}
		if len(t.Files) > 0 {
			fmt.Fprintf(&b, "Files: %s\n", strings.Join(t.Files, ", "))
		}
		for _, id := range t.DependsOn {
			fmt.Fprintf(&b, "After: %s\n", id)
		}
		if t.Write != nil {
			fmt.Fprintf(&b, "Writes %s:\n%s\n", t.Write.Path, t.Write.Content)
		}
		b.WriteString("\n")
	}
	for i := range d.Parts {
		p := &d.Parts[i]
		fmt.Fprintf(&b, "Child intent %s: %s\n%s\n", p.ID, p.Title, p.Body)
		if p.Risk != "" {
			fmt.Fprintf(&b, "Risk: %s\n", p.Risk)
		}
		for _, id := range p.DependsOn {
			fmt.Fprintf(&b, "After: %s\n", id)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// requestOf returns the request as text. Where it is approved itself, that is
// all that its hash is of, as the runner has it.
func requestOf(d *document.Detail) string {
	parts := d.Asked
	if len(parts) == 0 {
		parts = []document.Asked{
			{Name: "title", Texts: []string{d.Title}},
			{Name: "body", Texts: []string{d.Body}},
			{Name: "type", Texts: []string{d.Type}},
			{Name: "risk", Texts: []string{string(d.Risk)}},
		}
	}
	var b strings.Builder
	for _, p := range parts {
		for _, text := range p.Texts {
			switch {
			case text == "":
			case p.Name == "title", p.Name == "body":
				fmt.Fprintf(&b, "%s\n\n", text)
			default:
				fmt.Fprintf(&b, "%s%s: %s\n", strings.ToUpper(p.Name[:1]), p.Name[1:], text)
			}
		}
	}
	return b.String()
}
