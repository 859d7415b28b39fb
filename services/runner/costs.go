package runner

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/spending"
)

const (
	// costsKept is for how long a runner can tell what single attempts used: a quarter and a month. Its
	// memory grows with the history of a project by the titles and sums of intents alone.
	costsKept = 122 * 24 * time.Hour
	// costsRead bounds the time to read on in the journals for one request.
	costsRead = 4 * time.Second
)

// Costs returns a function that adds up the usage of a project's agents. Each project has a ledger in
// memory from its first request on, and only what was decided since is read for the next one. A
// request that meets a long journal for the first time may be told to come again: what was read by
// then is kept. Errors: *requests.RequestError.
func Costs(j *journal.Journal) func(context.Context, forge.ProjectID, document.CostsRequest) (document.Costs, error) {
	var mu sync.Mutex
	projects := map[forge.ProjectID]*costLedger{}
	return func(ctx context.Context, project forge.ProjectID, r document.CostsRequest) (document.Costs, error) {
		mu.Lock()
		l := projects[project]
		if l == nil {
			l = &costLedger{free: make(chan struct{}, 1), Ledger: spending.Ledger{Keep: costsKept}}
			projects[project] = l
		}
		mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, costsRead)
		defer cancel()
		select {
		case l.free <- struct{}{}:
			defer func() { <-l.free }()
		case <-ctx.Done():
			return document.Costs{}, refused(http.StatusServiceUnavailable, "", "the journals are being read; try again")
		}
		if err := l.readOn(ctx, j, project); err != nil {
			return document.Costs{}, err
		}
		if l.next == 0 { // whoever may ask for any project can make up as many as they like
			mu.Lock()
			delete(projects, project)
			mu.Unlock()
		}
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

// costLedger is that of one project. Whoever has put something into free may use it.
type costLedger struct {
	spending.Ledger

	free chan struct{}
	next uint64 // the sequence to read from
}

// readOn reads the records that came since the last time.
func (l *costLedger) readOn(ctx context.Context, j *journal.Journal, project forge.ProjectID) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	done := false
	err := j.Follow(reading, project, l.next, journal.Follower{
		Record: func(key forge.Key, seq uint64, rec forge.Record) error {
			l.Add(key, &rec)
			l.next = seq + 1
			return nil
		},
		CaughtUp: func() error {
			done = true
			stop()
			return nil
		},
	})
	if err == nil && !done {
		return refused(http.StatusServiceUnavailable, "", "the journals are being read; try again")
	}
	return err
}
