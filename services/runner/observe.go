package runner

import (
	"context"
	"errors"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/internal/logging"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

const (
	// observeEvery is the default of Config.ObserveEvery.
	observeEvery = 15 * time.Second
	// gatherFor is how long replicas have to answer which projects they serve.
	gatherFor = time.Second
	// gatherEvery says at which of the observations replicas are asked.
	gatherEvery = 4
)

// observe reads the state of the installation now and then, for its metrics, until ctx ends.
// Every runner does, and sees the same; decisions do not wait for it.
func (r *runner) observe(ctx context.Context, every time.Duration) {
	if r.metrics == nil {
		return
	}
	// The overview is kept from look to look, and reads only what went on.
	o := observer{bus: r.bus, metrics: r.metrics, overview: r.bus.Journal.NewOverview()}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 0; ; n++ {
		if n%gatherEvery == 0 {
			o.gather(ctx)
		}
		// After an error the last snapshot is shown until it is a minute old.
		if s, err := o.look(ctx); err == nil {
			r.metrics.Show(s)
		} else if ctx.Err() == nil {
			r.log.WarnContext(ctx, "the state of the installation cannot be read; metrics do not show it", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// traceEnd records the first span of a run's trace when its project has been told of its end.
func (r *runner) traceEnd(ctx context.Context, ev *forge.Event, d forge.Decision) {
	ended := forge.As[*forge.RunEnded](ev.Message)
	if ended == nil || d != forge.Applied || !r.metrics.Tracing() {
		return
	}
	// The project is told of the end once, so the span is exported once, by whoever decided.
	key := forge.Key{Project: ev.To.Project, Intent: forge.IntentID(ev.Actor)}
	run := telemetry.Run{Key: key, Number: ended.Run}
	ctx = logging.Trace(logging.Machine(ctx, key), run.TraceID())
	view, err := View(ctx, r.bus, key)
	if err != nil {
		r.log.WarnContext(ctx, "the first span of a trace is missing", "error", err)
		return
	}
	for i := range view.History {
		if h := &view.History[i]; h.Run == ended.Run {
			r.metrics.RunEnded(run, h)
			return
		}
	}
}

// observer remembers the last look for the next one.
type observer struct {
	bus      *bus.Bus
	metrics  *telemetry.Recorder
	overview *journal.Overview
	dead     bus.DeadCount
	// copies is how many copies of streams were missing when they were last looked for.
	copies int
}

// gather makes those projects known that replicas say they serve, and counts the
// copies of streams that are missing. A name that was only submitted is not known.
func (o *observer) gather(ctx context.Context) {
	if n, err := o.bus.MissingCopies(ctx); err == nil { // a server that does not answer at all is told by the look
		o.copies = n
	}
	ctx, cancel := context.WithTimeout(ctx, gatherFor)
	defer cancel()
	found, err := o.bus.Presence.Gather(ctx, nil)
	if err != nil {
		return // they are asked again
	}
	for i := range found {
		o.metrics.Serves(found[i].Projects...)
	}
}

// look returns the present state.
func (o *observer) look(ctx context.Context) (*telemetry.Snapshot, error) {
	// All or nothing: half a look would show a queue that is empty because it was not read.
	s := o.metrics.NewSnapshot()
	queues, queuesErr := o.bus.Commands.Queues(ctx)
	dead, deadErr := o.bus.CountDead(ctx, &o.dead)
	if err := errors.Join(o.overview.Refresh(ctx), queuesErr, deadErr); err != nil {
		return nil, err
	}
	for _, one := range o.overview.All() {
		if one.Key.IsProject() {
			s.Project(one.Key.Project, one.Project)
		} else {
			s.Intent(one.Key.Project, one.Status, one.Waiting, one.CreatedAt)
		}
	}
	for _, q := range queues {
		s.Queue(q.Step, q.Waiting, q.Active)
	}
	s.DeadLetters(dead)
	s.MissingCopies(o.copies)
	return s, nil
}
