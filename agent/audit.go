package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// maxFindings is the most findings that an area may have.
const maxFindings = 100

// Audit is the answer of an audit call.
type Audit struct {
	Summary string      `json:"summary"`
	Areas   []AuditArea `json:"areas"` // all of AuditAreas, each once
}

// AuditArea reports on one of AuditAreas.
type AuditArea struct {
	Name     string    `json:"name"`
	Summary  string    `json:"summary"`
	Findings []Finding `json:"findings"`
}

// Finding describes a possible improvement.
type Finding struct {
	Title    string     `json:"title"`
	Detail   string     `json:"detail"`
	Severity string     `json:"severity"` // low, med or high
	Evidence []Evidence `json:"evidence"` // at least one
}

// AuditAreas returns the areas that every audit covers, in the order of its report.
func AuditAreas() []string {
	return []string{"tests", "design", "conventions", "debt", "documentation"}
}

// ParseAudit returns the answer of an audit call, or a *Failure. Its areas are those of
// AuditAreas, in that order, each exactly once.
func ParseAudit(answer []byte) (forge.Audit, error) {
	var a Audit
	if err := decode(answer, &a); err != nil {
		return forge.Audit{}, err
	}
	out := forge.Audit{Summary: strings.TrimSpace(a.Summary)}
	if out.Summary == "" {
		return out, invalid("summary is empty")
	}
	seen := map[string]forge.AuditArea{}
	for i, in := range a.Areas {
		if _, twice := seen[in.Name]; twice || !slices.Contains(AuditAreas(), in.Name) {
			return out, invalid("areas[%d].name is %q; must be each of %s, once", i, in.Name, strings.Join(AuditAreas(), ", "))
		}
		area, err := auditArea(fmt.Sprintf("areas[%d]", i), in)
		if err != nil {
			return out, err
		}
		seen[in.Name] = area
	}
	for _, name := range AuditAreas() {
		area, ok := seen[name]
		if !ok {
			return out, invalid("areas lacks %s; say what you looked at, also if there is nothing to find", name)
		}
		out.Areas = append(out.Areas, area)
	}
	return out, nil
}

// auditArea checks and converts one area. at is its path in the answer, for the error.
func auditArea(at string, in AuditArea) (forge.AuditArea, error) {
	area := forge.AuditArea{Name: in.Name, Summary: strings.TrimSpace(in.Summary)}
	if area.Summary == "" {
		return area, invalid("%s.summary is empty", at)
	}
	if len(in.Findings) > maxFindings {
		return area, invalid("%s has %d findings; at most %d are allowed: leave out the least", at, len(in.Findings), maxFindings)
	}
	for k, f := range in.Findings {
		at := fmt.Sprintf("%s.findings[%d]", at, k)
		found := forge.Finding{Title: term.Short(f.Title, maxTitle), Detail: strings.TrimSpace(f.Detail), Severity: forge.Risk(f.Severity)}
		switch {
		case found.Title == "":
			return area, invalid("%s.title is empty", at)
		case found.Detail == "":
			return area, invalid("%s.detail is empty", at)
		case found.Severity.Rank() == 0:
			return area, invalid("%s.severity is %q; must be low, med or high", at, f.Severity)
		}
		var err error
		if found.Evidence, err = distinctEvidence(at, f.Evidence, 1); err != nil {
			return area, err
		}
		area.Findings = append(area.Findings, found)
	}
	return area, nil
}

// distinctEvidence returns the evidence without blank and repeated places, and refuses
// fewer than least places.
func distinctEvidence(at string, in []Evidence, least int) ([]forge.Evidence, error) {
	list, err := evidence(at, in)
	if err != nil {
		return nil, err
	}
	var out []forge.Evidence
	for _, e := range list {
		if e.Ref = strings.TrimSpace(e.Ref); e.Ref != "" && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	if len(out) < least {
		return nil, invalid("%s.evidence names %d places; at least %d are needed", at, len(out), least)
	}
	return out, nil
}
