package runner

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
)

// journalsRead bounds the time to read on in the journals for one request.
const journalsRead = 4 * time.Second

// Costs and health are two sums of the same records. Each is kept apart, because each is asked for
// by other people at other times, and a sum that no one asks for takes neither memory nor time.

// adder takes the records of the intents of a project, and perhaps of the
// project, in the order of their journals.
type adder interface {
	Add(key forge.Key, rec *forge.Record)
}

// books keeps something in memory that the journals of a project's intents add up to. Each project
// has one from its first request on, and only what was decided since is read for the next one.
type books[T adder] struct {
	journal *journal.Journal
	// empty returns one of before the first record.
	empty func() T
	// own says that it takes the records of the project itself as well.
	own bool

	mu       sync.Mutex
	projects map[forge.ProjectID]*book[T]
}

// book is that of one project. Whoever has put something into free may use it.
type book[T adder] struct {
	of   T
	free chan struct{}
	// after is the sequence to read on behind, and afterOwn that for the project's own records.
	after, afterOwn uint64
}

// newBooks returns the books of all projects, none of which is read yet. Own says whether the
// journals of projects are added up as well as those of their intents; empty makes the sum that a
// book begins with.
func newBooks[T adder](j *journal.Journal, own bool, empty func() T) *books[T] {
	return &books[T]{journal: j, empty: empty, own: own, projects: map[forge.ProjectID]*book[T]{}}
}

// open returns the sum of the journals of a project as they are now, for the caller alone
// until release is called. A request that meets long journals for the first time may be
// told to come again: what was read by then is kept. Errors: *requests.RequestError.
func (b *books[T]) open(ctx context.Context, project forge.ProjectID) (of T, release func(), err error) {
	b.mu.Lock()
	one := b.projects[project]
	if one == nil {
		one = &book[T]{of: b.empty(), free: make(chan struct{}, 1)}
		b.projects[project] = one
	}
	b.mu.Unlock()
	select {
	case one.free <- struct{}{}:
	case <-ctx.Done():
		return of, nil, refused(http.StatusServiceUnavailable, "", "the journals are being read; try again")
	}
	release = func() { <-one.free }
	err = one.readOn(ctx, b.journal, project, b.own)
	if err != nil && one.after == 0 { // others may wait for it already
		one.of, one.afterOwn = b.empty(), 0
	}
	if one.after == 0 { // whoever may ask for any project can make up as many as they like
		b.mu.Lock()
		delete(b.projects, project)
		b.mu.Unlock()
	}
	if err != nil {
		release()
		return of, nil, err
	}
	return one.of, release, nil
}

// readOn reads the records that came since the last time. After an error it goes on where it was;
// where after is 0 then, it has to begin anew: nothing is read, or a record takes a newer version.
func (b *book[T]) readOn(ctx context.Context, j *journal.Journal, project forge.ProjectID, own bool) (err error) {
	if b.after, err = j.Records(ctx, project, b.after, b.of.Add); err == nil && own {
		b.afterOwn, err = j.ProjectRecords(ctx, project, b.afterOwn, b.of.Add)
	}
	if _, newer := errors.AsType[*bus.UnknownError](err); newer {
		b.after = 0
	}
	if err != nil && ctx.Err() != nil {
		return refused(http.StatusServiceUnavailable, "", "the journals are being read; try again")
	}
	return err
}
