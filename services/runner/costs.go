package runner

import (
	"context"
	"net/http"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/spending"
)

// costsKept is for how long a runner can tell what single attempts used: a quarter and a month. Its
// memory grows with the history of a project by the titles and sums of intents alone.
const costsKept = 122 * 24 * time.Hour

// Costs returns a function that adds up the usage of a project's agents. Each project has a ledger in
// memory from its first request on, and only what was decided since is read for the next one. A
// request that meets a long journal for the first time may be told to come again: what was read by
// then is kept. Errors: *requests.RequestError.
func Costs(j *journal.Journal) func(context.Context, forge.ProjectID, document.CostsRequest) (document.Costs, error) {
	books := newBooks(j, false, func() *spending.Ledger { return &spending.Ledger{Keep: costsKept} })
	return func(ctx context.Context, project forge.ProjectID, r document.CostsRequest) (document.Costs, error) {
		ctx, cancel := context.WithTimeout(ctx, journalsRead)
		defer cancel()
		l, release, err := books.open(ctx, project)
		if err != nil {
			return document.Costs{}, err
		}
		defer release()
		if from := l.From(); r.Since.Before(from) && !from.IsZero() {
			if !r.Since.IsZero() {
				return document.Costs{}, refused(http.StatusBadRequest, "since", "is too long ago: what attempts used is known since %s",
					from.UTC().Format(time.RFC3339))
			}
			r.Since = from
		}
		sums, err := j.ProjectSummaries(ctx, project)
		if err != nil {
			return document.Costs{}, err
		}
		c := l.Costs(r, sums, time.Now())
		c.Bound()
		return c, nil
	}
}
