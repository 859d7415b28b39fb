package runner

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/packed"
	"github.com/pfl-forge/pfl-forge/document/whole"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
)

// wholes tells intents as a whole, and the lists of all, of which it reads
// again only the journals that went on. It is for readers who cannot fold a
// journal themselves, because they may not have all of it.
type wholes struct {
	bus   *bus.Bus
	lists *journal.Lists
}

// answer serves a request. Errors: bus.ErrNotFound for an intent without a
// journal, and *requests.RequestError for one that is too large.
func (w wholes) answer(ctx context.Context, project forge.ProjectID, req whole.Request) (p packed.Packed, err error) {
	if req.Intent == "" {
		p, err = w.list(ctx, project, req.After)
	} else {
		p, err = w.intent(ctx, forge.Key{Project: project, Intent: req.Intent}, req.Records)
	}
	if errors.Is(err, packed.ErrLarge) {
		err = refused(http.StatusConflict, "intent", "%s", err)
	}
	return p, err
}

// list returns a page of the intents of a project, with the state of the project.
func (w wholes) list(ctx context.Context, project forge.ProjectID, after forge.IntentID) (packed.Packed, error) {
	all, err := w.lists.Summaries(ctx, project)
	if err != nil {
		return packed.Packed{}, err
	}
	projects, err := w.bus.Journal.ProjectSummaries(ctx, project)
	if err != nil {
		return packed.Packed{}, err
	}
	return packed.List(whole.ListOf(all, projects, after))
}

// intent returns everything that is known of an intent, and its records as a reader
// is told them, without those that are known. All of it is made of its whole journal.
func (w wholes) intent(ctx context.Context, key forge.Key, known int) (packed.Packed, error) {
	records, head, err := w.bus.Journal.Load(ctx, key)
	if err != nil {
		return packed.Packed{}, err
	}
	if len(records) == 0 {
		return packed.Packed{}, bus.ErrNotFound
	}
	d := whole.Intent{Attempts: report.Ended(key, records)}
	d.View, d.Work = report.Of(key, records)
	d.View = report.AbridgeView(d.View)
	d.View.Seq = head.Seq
	if head.Broken != nil {
		d.Broken = head.Broken.Error()
	}
	return packed.Intent(&d, slices.Values(report.Abridge(records)), known)
}
