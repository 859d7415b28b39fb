package document

import (
	"github.com/pfl-forge/pfl-forge"
)

// Audit is the report of an audit, as programs read it.
type Audit struct {
	Intent  forge.IntentID `json:"intent"  yaml:"intent"`
	Title   string         `json:"title"   yaml:"title"`
	Status  forge.Status   `json:"status"  yaml:"status"`
	Summary string         `json:"summary" yaml:"summary"`
	Areas   []AuditArea    `json:"areas"   yaml:"areas"`
}

// AuditArea is one of the areas that an audit looks at, such as the tests.
type AuditArea struct {
	Name     string         `json:"name"     yaml:"name"`
	Summary  string         `json:"summary"  yaml:"summary"`
	Findings []AuditFinding `json:"findings" yaml:"findings"`
}

// AuditFinding is one thing that an audit found in an area.
type AuditFinding struct {
	Title    string     `json:"title"              yaml:"title"`
	Severity forge.Risk `json:"severity"           yaml:"severity"`
	Detail   string     `json:"detail"             yaml:"detail"`
	Evidence []string   `json:"evidence,omitempty" yaml:"evidence,omitempty"` // such as "file: main.go"
}

// AuditOf returns the document of an audit. The view is of an audit that has a report.
func AuditOf(v *forge.View) Audit {
	doc := Audit{Intent: v.Intent.ID, Title: v.Intent.Title, Status: v.Summary.Status, Summary: v.Audit.Summary, Areas: []AuditArea{}}
	for _, area := range v.Audit.Areas {
		out := AuditArea{Name: area.Name, Summary: area.Summary, Findings: []AuditFinding{}}
		for _, f := range area.Findings {
			found := AuditFinding{Title: f.Title, Severity: f.Severity, Detail: f.Detail}
			for _, e := range f.Evidence {
				found.Evidence = append(found.Evidence, string(e.Type)+": "+e.Ref)
			}
			out.Findings = append(out.Findings, found)
		}
		doc.Areas = append(doc.Areas, out)
	}
	return doc
}
