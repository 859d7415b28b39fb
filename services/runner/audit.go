package runner

import (
	"context"
	"errors"
	"net/http"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/audit"
)

// Audit returns a page of who did what in a project, and how far its journals are
// whole. It reads all of them. Error: bus.ErrNotFound for an intent without a journal.
func Audit(ctx context.Context, b *bus.Bus, project forge.ProjectID, req document.AuditRequest) (document.Audit, error) {
	pager, err := audit.NewPager(req)
	if err != nil {
		return document.Audit{}, err
	}
	scope := forge.Key{Project: project, Intent: req.Intent}
	r := audit.NewReader(scope)
	err = b.Journal.Each(ctx, scope, func(e *journal.Entry) error {
		pager.Add(r.Add(e))
		return nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return document.Audit{}, refused(http.StatusServiceUnavailable, "intent",
			"there is more to read than a request has time for: ask for one intent, or read it all with pfl-forge audit-log export")
	}
	if err == nil && req.Intent != "" && !r.Has(scope) {
		err = bus.ErrNotFound
	}
	return pager.Page(r), err
}
