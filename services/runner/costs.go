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

// Spending tells what the agents of projects used, and on what. Each project has a ledger in
// memory from its first request on, and only what was decided since is read for the next one. A
// request that meets a long journal for the first time may be told to come again: what was read by
// then is kept. It is safe for concurrent use.
type Spending struct {
	journal *journal.Journal
	books   *books[*spending.Ledger]
}

// NewSpending returns a Spending that reads a journal.
func NewSpending(j *journal.Journal) *Spending {
	return &Spending{j, newBooks(j, false, func() *spending.Ledger { return &spending.Ledger{Keep: costsKept} })}
}

// Costs adds up the usage of a project's agents. Error: *requests.RequestError.
func (s *Spending) Costs(ctx context.Context, project forge.ProjectID, r document.CostsRequest) (document.Costs, error) {
	ctx, cancel := context.WithTimeout(ctx, journalsRead)
	defer cancel()
	l, release, err := s.books.open(ctx, project)
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
	sums, err := s.journal.ProjectSummaries(ctx, project)
	if err != nil {
		return document.Costs{}, err
	}
	c := l.Costs(r, sums, time.Now())
	c.Bound()
	return c, nil
}

// By returns the intents of a project that an agent works on, or has worked on.
// Error: *requests.RequestError.
func (s *Spending) By(ctx context.Context, project forge.ProjectID, agent string) (map[forge.IntentID]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, journalsRead)
	defer cancel()
	l, release, err := s.books.open(ctx, project)
	if err != nil {
		return nil, err
	}
	defer release()
	return l.By(agent), nil
}
