package runner

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
)

// Timeline returns a page of the records of an intent, with the attempts and waits of their time.
// It is made of the intent's journal alone. Error: bus.ErrNotFound for an intent without a journal.
func Timeline(ctx context.Context, b *bus.Bus, project forge.ProjectID, req document.TimelineRequest) (document.Timeline, error) {
	key := forge.Key{Project: project, Intent: req.Intent}
	records, _, err := b.Journal.Load(ctx, key)
	if err != nil {
		return document.Timeline{}, err
	}
	if len(records) == 0 {
		return document.Timeline{}, bus.ErrNotFound
	}
	t := report.Timeline(key, records)
	t.Page(req)
	return t, nil
}
