package runner

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/queue"
)

// Queue returns the merge queue of a project, made of its whole journal.
func Queue(ctx context.Context, b *bus.Bus, project forge.ProjectID) (document.Queue, error) {
	key := forge.Key{Project: project}
	records, _, err := b.Journal.Load(ctx, key)
	if err != nil {
		return document.Queue{}, err
	}
	var r queue.Reader
	for i := range records {
		r.Add(&records[i])
	}
	p := machine.Fold(key, records).(*projects.Project)
	sum := p.Summary()
	return r.Read(&sum, p.Line(), time.Now()), nil
}

// queues tells merge queues. Each project that is asked about has a machine of its own
// from then on, which decides nothing: only what was decided since is read for the next
// request, and a project about which nothing was decided costs a look at its last record.
type queues struct {
	driver  *machine.Driver
	journal machine.Journal

	mu       sync.Mutex
	projects map[forge.ProjectID]*queued
}

// queued is one project. Whoever has put something into free may use it.
type queued struct {
	free   chan struct{}
	loaded *machine.Loaded
	reader queue.Reader
}

// newQueues returns queues of projects that are folded by a driver's rules.
func newQueues(d *machine.Driver, j machine.Journal) *queues {
	return &queues{driver: d, journal: j, projects: map[forge.ProjectID]*queued{}}
}

// read returns the merge queue of a project. Errors: those of the journal, and
// *requests.RequestError while it is being read.
func (qs *queues) read(ctx context.Context, project forge.ProjectID, req document.QueueRequest) (document.Queue, error) {
	qs.mu.Lock()
	q := qs.projects[project]
	if q == nil {
		q = &queued{free: make(chan struct{}, 1)}
		qs.projects[project] = q
	}
	qs.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, journalsRead)
	defer cancel()
	select {
	case q.free <- struct{}{}:
		defer func() { <-q.free }()
	case <-ctx.Done():
		return document.Queue{}, refused(http.StatusServiceUnavailable, "", "the journal is being read; try again")
	}
	if err := qs.goOn(ctx, q, forge.Key{Project: project}); err != nil {
		return document.Queue{}, err
	}
	if q.loaded.Head.Seq == 0 { // whoever may ask for any project can make up as many as they like
		qs.mu.Lock()
		delete(qs.projects, project)
		qs.mu.Unlock()
	}
	p := q.loaded.Machine.(*projects.Project)
	sum := p.Summary()
	line := p.Line()
	d := q.reader.Read(&sum, line, time.Now())
	if req.Intent != "" {
		queue.Of(&d, line, req.Intent)
	}
	d.Bound()
	return d, nil
}

// goOn brings the machine of a project up to the end of its journal.
func (qs *queues) goOn(ctx context.Context, q *queued, key forge.Key) error {
	if q.loaded != nil {
		goes, err := q.loaded.GoOn(ctx, qs.journal, key, q.reader.Add)
		if goes || err != nil {
			return err
		}
	}
	l, err := qs.driver.Load(ctx, key)
	if err != nil {
		return err
	}
	q.loaded, q.reader = l, queue.Reader{}
	for i := range l.Recent {
		q.reader.Add(&l.Recent[i])
	}
	l.Recent = nil
	return nil
}
