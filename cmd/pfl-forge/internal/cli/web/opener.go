package web

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/services/gateway/console"
)

const (
	// goneEvery is how often it is looked whether a run that was joined goes on.
	goneEvery = 500 * time.Millisecond
	// answerTime bounds how long a runner that is just starting is waited for,
	// and answerEvery is how often it is asked.
	answerTime  = 5 * time.Second
	answerEvery = 10 * time.Millisecond
	// account is the name by which runners are asked.
	account = "console"
)

// opener has a session with the repository's server while requests need one. The server
// of a run stays joined until the run ends; without a run this process starts the
// server for the requests of a moment, so that a run can begin while pages are open.
type opener struct {
	ctx  context.Context //nolint:containedctx // the command's: what is opened for one request serves others, too
	repo *local.Repository
	log  *slog.Logger
	// furnish makes the console of a session.
	furnish func(s *local.Session, ending <-chan struct{}) *console.Console

	mu  sync.Mutex
	now *opened // nil while there is none
	// looking are the looks after joined runs.
	looking sync.WaitGroup
}

// opened is a session with its console.
type opened struct {
	session *local.Session
	console *console.Console
	// ending is closed when nothing new begins there.
	ending chan struct{}
	// users counts the requests under way; the last one closes a session that has ended.
	users int
	ended bool
}

// take returns the session of now, which the caller releases. Without one it opens a session: that
// of a run, which is joined, or one of this process. One whose run is gone is ended first.
func (d *opener) take() (*opened, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now != nil && d.now.session.Gone(d.ctx) {
		d.end(d.now)
	}
	if d.now == nil {
		s, err := local.OpenServing(d.ctx, d.repo, d.log)
		if err != nil {
			return nil, err
		}
		d.awaitAnswers(s)
		at := &opened{session: s, ending: make(chan struct{})}
		at.console = d.furnish(s, at.ending)
		d.now = at
		if !s.Owner() {
			d.looking.Go(func() { d.lookAfter(at) })
		}
	}
	d.now.users++
	return d.now, nil
}

// awaitAnswers waits until a runner answers. That none does is told by whatever is asked next.
func (d *opener) awaitAnswers(s *local.Session) {
	ctx, cancel := context.WithTimeout(d.ctx, answerTime)
	defer cancel()
	for {
		_, err := s.Bus.Submissions.List(ctx, s.Repo.Project, account, requests.ListRequest{Limit: 1})
		if !errors.Is(err, requests.ErrRunnerDown) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(answerEvery):
		}
	}
}

// release gives a session back. The last request closes a session that has ended, and also one
// whose server this process started: a run can begin between two requests.
func (d *opener) release(at *opened) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at.users--
	switch {
	case at.users > 0:
	case at.ended:
		at.session.Close(d.ctx)
	case at.session.Owner():
		d.end(at)
	}
}

// end has nothing new begin in a session, and closes it after its last request. The caller holds
// d.mu. A session that has ended is not ended again.
func (d *opener) end(at *opened) {
	if at.ended {
		return
	}
	at.ended = true
	close(at.ending)
	if d.now == at {
		d.now = nil
	}
	if at.users == 0 {
		at.session.Close(d.ctx)
	}
}

// lookAfter ends a session when its run has ended.
func (d *opener) lookAfter(at *opened) {
	tick := time.NewTicker(goneEvery)
	defer tick.Stop()
	for {
		select {
		case <-at.ending:
			return
		case <-tick.C:
		}
		if at.session.Gone(d.ctx) {
			d.mu.Lock()
			d.end(at)
			d.mu.Unlock()
			return
		}
	}
}

// leave ends the session of now.
func (d *opener) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now != nil {
		d.end(d.now)
	}
}

// close leaves, and waits until no look goes on.
func (d *opener) close() {
	d.leave()
	d.looking.Wait()
}
