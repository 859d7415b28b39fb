package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// mostKept bounds the summaries that a Lists keeps, of all projects together: some
// tens of megabytes. mostProjects bounds the projects: who asks may name any.
const mostKept, mostProjects = 20_000, 500

// Lists lists the intents of projects for those who look at them again and
// again, and reads only what has changed since. It is safe for concurrent use.
type Lists struct {
	journal *Journal

	mu sync.Mutex
	// used has the projects that are kept; the one that was asked for last is at the end.
	used []*projectList
}

// projectList are the intents of one project.
type projectList struct {
	project forge.ProjectID
	// turn has room for the one who refreshes it, or reads it.
	turn chan struct{}
	all  *lasts[forge.Summary]
	// size counts the summaries. It is read and written under Lists.mu.
	size int
}

// NewLists returns a Lists that knows nothing yet.
func (j *Journal) NewLists() *Lists { return &Lists{journal: j} }

// Summaries is Journal.Summaries of one project. Callers share the returned
// slice and must not change it.
func (l *Lists) Summaries(ctx context.Context, project forge.ProjectID) ([]forge.Summary, error) {
	filter, err := subjects.IntentJournals(project)
	if err != nil {
		return nil, fmt.Errorf("list intents: %w", err)
	}
	p := l.take(project, filter)
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := p.all.refresh(ctx); err != nil {
		return nil, fmt.Errorf("list %s: %w", filter, err)
	}
	l.keep(p)
	return p.summaries()
}

// summaries returns those that are kept, in the order of their keys.
func (p *projectList) summaries() ([]forge.Summary, error) {
	list := make([]forge.Summary, 0, len(p.all.known))
	for _, subject := range slices.Sorted(maps.Keys(p.all.known)) {
		switch one := p.all.known[subject]; {
		case one.err == nil:
			list = append(list, one.value)
		case !errors.Is(one.err, conn.ErrNotFound):
			return nil, fmt.Errorf("list %s: %w", subject, one.err)
		}
	}
	return list, nil
}

// take returns the intents of a project as they were read last, and makes it
// the last one that is let go.
func (l *Lists) take(project forge.ProjectID, filter string) *projectList {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.used, func(p *projectList) bool { return p.project == project })
	if i < 0 {
		all := newLasts(l.journal, filter, func(s *forge.Summary) forge.Summary { return *s })
		l.used = append(l.used, &projectList{project: project, turn: make(chan struct{}, 1), all: all})
		return l.used[len(l.used)-1]
	}
	p := l.used[i]
	l.used = append(slices.Delete(l.used, i, i+1), p)
	return p
}

// keep notes how large a project is that was read, and lets go those that were asked for longest
// ago where all together are too large. One that is too large alone is read as a whole each time.
func (l *Lists) keep(p *projectList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.size = len(p.all.known)
	sum := 0
	for _, one := range l.used {
		sum += one.size
	}
	for len(l.used) > mostProjects || len(l.used) > 0 && sum > mostKept {
		sum -= l.used[0].size
		l.used = slices.Delete(l.used, 0, 1)
	}
}
