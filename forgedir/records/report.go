package records

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// auditAreas are those that every report speaks of, in this order.
var auditAreas = []string{"tests", "design", "conventions", "debt", "documentation"}

// Report returns the findings of an audit as Markdown: the content of its file in
// layout.Reports. The same audit always makes the same bytes.
func Report(i *forge.Intent, a *forge.Audit) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\nAudit %s, requested on %s.\n", term.Line(i.Title), i.ID, i.CreatedAt.UTC().Format("2006-01-02"))
	paragraph(&b, a.Summary)
	areas := reportAreas(a)
	b.WriteString("\n| area | findings | high | med | low |\n|---|---|---|---|---|\n")
	for _, area := range areas {
		n := map[forge.Risk]int{}
		for _, f := range area.Findings {
			n[f.Severity]++
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", strings.ReplaceAll(term.Line(area.Name), "|", `\|`),
			len(area.Findings), n[forge.RiskHigh], n[forge.RiskMed], n[forge.RiskLow])
	}
	for _, area := range areas {
		fmt.Fprintf(&b, "\n## %s\n", term.Line(area.Name))
		paragraph(&b, area.Summary)
		if len(area.Findings) == 0 {
			b.WriteString("\nNothing was found.\n")
		}
		for _, f := range area.Findings {
			finding(&b, &f)
		}
	}
	return b.Bytes()
}

// reportAreas returns the five areas, and then those that the audit has besides. In
// each, the finding that does most harm comes first.
func reportAreas(a *forge.Audit) []forge.AuditArea {
	var out []forge.AuditArea
	for _, name := range auditAreas {
		area := forge.AuditArea{Name: name}
		for _, found := range a.Areas {
			if strings.EqualFold(found.Name, name) {
				area.Summary = strings.TrimSpace(area.Summary + "\n\n" + found.Summary)
				area.Findings = slices.Concat(area.Findings, found.Findings)
			}
		}
		out = append(out, area)
	}
	for _, area := range a.Areas {
		if !slices.ContainsFunc(auditAreas, func(name string) bool { return strings.EqualFold(name, area.Name) }) {
			area.Findings = slices.Clone(area.Findings)
			out = append(out, area)
		}
	}
	for _, area := range out {
		slices.SortStableFunc(area.Findings, func(x, y forge.Finding) int { return y.Severity.Rank() - x.Severity.Rank() })
	}
	return out
}

// finding writes one finding with its evidence.
func finding(b *bytes.Buffer, f *forge.Finding) {
	fmt.Fprintf(b, "\n### %s\n", term.Line(f.Title))
	if f.Severity != "" {
		fmt.Fprintf(b, "\nSeverity: %s\n", term.Line(string(f.Severity)))
	}
	paragraph(b, f.Detail)
	if len(f.Evidence) == 0 {
		return
	}
	b.WriteString("\nEvidence:\n\n")
	for _, e := range f.Evidence {
		fmt.Fprintf(b, "- %s %s\n", term.Line(string(e.Type)), quoted(e.Ref))
	}
}

// paragraph writes a text of an agent, without control characters; nothing if it is
// empty.
func paragraph(b *bytes.Buffer, text string) {
	if text = strings.TrimSpace(term.Sanitize(text)); text != "" {
		fmt.Fprintf(b, "\n%s\n", text)
	}
}

// quoted returns a text as code of one line.
func quoted(s string) string {
	s = term.Line(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}
