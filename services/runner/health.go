package runner

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/services/runner/health"
)

// Health returns a function that tells how well the work of a project goes, by
// week, as Costs tells what it costs.
func Health(j *journal.Journal) func(context.Context, forge.ProjectID, figures.HealthRequest) (figures.Health, error) {
	books := newBooks(j, true, func() *health.Ledger { return &health.Ledger{Keep: figures.MostHealthWeeks} })
	return func(ctx context.Context, project forge.ProjectID, r figures.HealthRequest) (figures.Health, error) {
		ctx, cancel := context.WithTimeout(ctx, journalsRead)
		defer cancel()
		l, release, err := books.open(ctx, project)
		if err != nil {
			return figures.Health{}, err
		}
		defer release()
		h := l.Health(r, time.Now())
		h.Bound()
		return h, nil
	}
}
