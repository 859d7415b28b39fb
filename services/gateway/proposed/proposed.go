// Package proposed writes as text what a person is asked to approve: the
// request, and the plan if there is one.
//
// A person approves by a hash, and the hash is of all of it. So whoever shows
// an approval shows these texts as a whole, or has no button and no hash for
// it: comments at forges and messages in chats do.
package proposed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/asked"
)

// IsPlanned reports whether there is a plan, which is approved for its request;
// else the request itself is, whatever is left of a plan before.
func IsPlanned(d *document.Detail) bool {
	return len(d.Asked) == 0 && len(d.PlanTasks)+len(d.Parts) > 0
}

// IsWhole reports whether an intent that waits for approval has in its texts
// all that the hash is of. The criteria of a goal are approved with its plan
// and are not in it, and a runner leaves out of its answer what is too long.
func IsWhole(d *document.Detail) bool {
	if !IsPlanned(d) {
		return len(d.Asked) > 0
	}
	return d.Goal == nil && !slices.ContainsFunc(d.Truncated, func(t document.Truncated) bool {
		return strings.HasPrefix(t.Field, "work") || strings.HasPrefix(t.Field, "parts")
	})
}

// Plan returns the plan as text: all that its hash is of besides the request. Its
// order is that in which the runner hashes it, tasks before child intents. It is no
// format to be read again: texts of agents and people can look like lines of ours.
func Plan(d *document.Detail) string {
	var b strings.Builder
	for i := range d.PlanTasks {
		t := &d.PlanTasks[i]
		fmt.Fprintf(&b, "Task %d: %s\n", i+1, t.Title)
		// Of a recipe that makes a task of each line of a list, the line.
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
		// A file that is written without an agent is a part of the plan as a whole.
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

// Request returns the request as text. Where it is approved itself, that is all
// that its hash is of, as the runner has it. The body is the last: no line of
// it can be taken for one of ours that follows.
func Request(d *document.Detail) string {
	parts := d.Asked
	// With a plan the runner hashes the title, the body and the risk; the type
	// says which flow it takes.
	if len(parts) == 0 {
		parts = []asked.Part{
			{Name: "title", Texts: []string{d.Title}},
			{Name: "body", Texts: []string{d.Body}},
			{Name: "type", Texts: []string{d.Type}},
			{Name: "risk", Texts: []string{string(d.Risk)}},
		}
	}
	var title, body string
	var settings strings.Builder
	for _, p := range parts {
		for _, text := range p.Texts {
			switch {
			case text == "":
			case p.Name == "title":
				title = text
			case p.Name == "body":
				body = text
			default:
				fmt.Fprintf(&settings, "%s%s: %s\n", strings.ToUpper(p.Name[:1]), p.Name[1:], text)
			}
		}
	}
	return strings.TrimSpace(title+"\n\n"+settings.String()) + "\n\n" + body + "\n"
}
