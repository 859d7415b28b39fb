package console

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/audits"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/board"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/download"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const (
	// perAudit is how many events a page has, and perExport those that are
	// asked for at once for an export.
	perAudit, perExport = 50, 1000
	// mostExported bounds the events of an export, which is kept in memory until it is whole.
	mostExported = 5000
	// auditTime is how long an audit may take, which reads all journals of a project.
	auditTime = 12 * time.Second
)

// The attacks that the audit has to stand, each with its test:
//
//   - a title, a reason or a name is HTML, reorders text or cannot be seen, on the page or in a terminal that
//     prints the export: TestConsoleAuditOfLiars
//   - a record was altered: TestConsoleAuditOfLiars
//   - the reader has another role, another project, or lost the role while the page is open: TestConsoleAudit
//   - a parameter is no name, no time, no place, or is given twice: TestConsoleAudit, TestAuditByPage
//   - texts are as long as they can be, or there are more events than an answer holds: TestAuditIsBounded
//
// One project is audited at a time: its journals hold one another, and those of
// two projects do not.

// auditPage has the data of the audit of a project.
type auditPage struct {
	document.Audit
	choice
	Filter  board.Filter
	Actions []string
	// Export is the address of a download of the filtered events. First and
	// Later lead to other pages; empty where there is none.
	Export, First, Later string
	// Command verifies the same in a terminal, with the signatures.
	Command string
}

// auditable returns the listed projects that the holder of a token may audit.
func (c *Console) auditable(t *tokens.Token) []forge.ProjectID {
	return slices.DeleteFunc(c.projects(t), func(p forge.ProjectID) bool { return !t.May(p, tokens.Audit) })
}

// audit shows who did what in a project, and whether its journals prove it.
func (v *visit) audit() error {
	page, ask, err := v.audited()
	if err != nil || page.Project == "" {
		return err
	}
	after := v.r.URL.Query().Get("after")
	ask.Set("limit", strconv.Itoa(perAudit))
	if after != "" {
		ask.Set("after", after)
	}
	if page.Audit, err = v.auditOf(page.Project, ask); err != nil {
		return err
	}
	page.Export = address(Base+"audit/export", page.Filter.Values)
	if after != "" {
		page.First = address(Base+"audit", page.Filter.Values)
	}
	if page.Next != "" {
		q := maps.Clone(page.Filter.Values)
		q.Set("after", page.Next)
		page.Later = address(Base+"audit", q)
	}
	page.Command = "pfl-forge audit-log verify"
	if v.console.cfg.Own == nil {
		page.Command = "pfl-forge --project " + string(page.Project) + " audit-log verify --trusted-keys FILE"
	}
	return v.show(http.StatusOK, "audit", "Audit of "+string(page.Project), &page)
}

// audited reads the filter of the address, and returns the query by which the API is
// asked. Where the address names no project, it is the first one that may be audited.
func (v *visit) audited() (page auditPage, ask url.Values, err error) {
	page = auditPage{Actions: document.AuditActions}
	if page.Filter.Values, ask, err = audits.Parse(v.r.URL.Query()); err != nil {
		return page, nil, &refusal{http.StatusBadRequest, sentence(err.Error())}
	}
	page.choice, err = v.choose(tokens.Audit, "Auditing takes the role auditor or operator in a project: /console/audit?project=NAME.")
	page.Filter.Values.Set("project", string(page.Project))
	page.Projects = merged(page.Projects, []forge.ProjectID{page.Project})
	return page, ask, err
}

// auditOf asks for a page of an audit.
func (v *visit) auditOf(p forge.ProjectID, ask url.Values) (a document.Audit, err error) {
	ctx, cancel := context.WithTimeout(v.r.Context(), auditTime)
	defer cancel()
	err = v.holder.Ask(ctx, api.Call{Method: http.MethodGet, Path: "/api/v1/projects/" + string(p) + "/audit?" + ask.Encode()}, &a)
	return a, err
}

// export downloads the events that the filter selects, the oldest first, each a
// line of JSON as audit-log export prints it. It is read as a whole before
// anything is sent, so what is downloaded is complete.
func (v *visit) export() error {
	page, ask, err := v.audited()
	if err != nil {
		return err
	}
	defer v.hurry()()
	ask.Set("limit", strconv.Itoa(perExport))
	var all []document.CloudEvent[document.Audited]
	for {
		a, err := v.auditOf(page.Project, ask)
		if v.r.Context().Err() != nil {
			return &refusal{http.StatusServiceUnavailable, "Reading the journals took too long. Choose a shorter time, or use pfl-forge audit-log export."}
		}
		if err != nil {
			return err
		}
		all = append(all, a.Events...)
		if a.Next == "" {
			break
		}
		if len(all) >= mostExported {
			return &refusal{http.StatusBadRequest, fmt.Sprintf(
				"There are more than %d events. Choose a shorter time, or use pfl-forge audit-log export.", mostExported,
			)}
		}
		ask.Set("after", a.Next)
	}
	d := &download.File{To: v.w, Name: fmt.Sprintf("audit-%s.jsonl", page.Project)}
	for i := range slices.Backward(all) {
		if err := d.Line(all[i]); err != nil {
			return cutOff(v, d, err)
		}
	}
	return d.End()
}
