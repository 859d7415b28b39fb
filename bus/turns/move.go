package turns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/retry"
)

const (
	// pauseLeast and pauseMost bound how long nothing is looked at while nothing could be moved.
	pauseLeast, pauseMost = 5 * time.Millisecond, 160 * time.Millisecond
	// findEvery is how often what other processes hold is looked for: it is
	// moved by all, also when they are gone.
	findEvery = 5 * time.Second
)

// Run moves commands on until ctx ends. Nothing tells it that workers have taken
// some: while anything is held, it looks, at once after a round in which
// something was moved, and later and later after one in which nothing was. A held
// command calls for minutes of an agent; a look costs a request for each line.
func (t *Turns) Run(ctx context.Context) {
	if on, _ := t.settings(); !on {
		return
	}
	loop := t.conn.Alive.Loop("turns of projects")
	defer loop.End()
	var notices retry.Notices
	found, pause := time.Now(), pauseLeast
	for ctx.Err() == nil {
		loop.Busy()
		moved, err := t.round(ctx)
		if time.Since(found) > findEvery {
			err = cmp.Or(err, t.find(ctx))
			found = time.Now()
		}
		loop.Rest()
		if err != nil && ctx.Err() == nil && notices.Due(time.Now()) {
			t.conn.Log.WarnContext(ctx, "commands that wait for their turn cannot be moved on; trying again", "error", err)
		}
		switch {
		case moved > 0: // what cannot be moved holds up no other
			if err == nil {
				notices.Reset()
			}
			pause = pauseLeast
			continue
		case err != nil:
			pause = pauseMost
		}
		// With nothing held, only a command that another process holds, and
		// leaves, is missed until the next find.
		wait := findEvery
		if len(t.busy()) > 0 || err != nil {
			wait, pause = pause, min(2*pause, pauseMost)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-t.wake:
		}
		timer.Stop()
	}
}

// find notes which projects have commands in which line, as the stream shows it.
func (t *Turns) find(ctx context.Context) error {
	held, err := t.list(ctx, subjects.EveryHeld)
	if err != nil {
		return err
	}
	for _, subject := range held {
		line, c, err := subjects.ParseHeld(subject)
		if err != nil {
			t.conn.Log.WarnContext(ctx, "what is no command was held; it is removed", "subject", subject)
			if err := t.remove(ctx, subject); err != nil {
				return err
			}
			continue
		}
		t.view(line).add(c.To.Project)
	}
	return nil
}

// list returns the subjects of the stream of commands that a filter matches, sorted.
func (t *Turns) list(ctx context.Context, filter string) ([]string, error) {
	var info struct {
		State struct {
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	err := t.conn.API(ctx, "STREAM.INFO."+streams.Commands, map[string]string{"subjects_filter": filter}, &info)
	return slices.Sorted(maps.Keys(info.State.Subjects)), err
}

// round moves commands on as far as there is room, and returns how many. The
// lines of steps near the end of the flow are served first: where calls are
// bounded, what is begun is finished before more is begun. What fails in one
// line, or of one project, keeps no other from its turn; the error is the first.
func (t *Turns) round(ctx context.Context) (int, error) {
	lines := t.busy()
	if len(lines) == 0 {
		return 0, nil
	}
	// One count serves all lines: a project's calls are bounded over all its steps.
	calls, err := t.count(ctx)
	if err != nil {
		return 0, err
	}
	all := 0
	var first error
	for _, l := range lines {
		n, err := t.serve(ctx, l, calls)
		all, first = all+n, cmp.Or(first, err)
		if ctx.Err() != nil {
			break
		}
	}
	return all, first
}

// serve moves commands of a line on, one of each project in its turn. A project
// whose turn it was goes to the end of the ring while it has more; one whose
// calls are at their bound keeps its place there and holds up no other, and one
// of which nothing can be moved for an error neither. The error is the first.
func (t *Turns) serve(ctx context.Context, l *lineView, calls *calls) (moved int, err error) {
	room, projects, err := l.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer l.end()
	// full counts the projects in a row of which none could be moved.
	for full := 0; moved < room && full < projects; {
		project, ok := l.next()
		if !ok {
			break
		}
		did, seq, failed := t.move(ctx, l, project, calls)
		switch {
		case failed != nil:
			l.add(project)
			if err = cmp.Or(err, failed); ctx.Err() != nil {
				return moved, err
			}
			full++
		case did == moves:
			l.add(project)
			l.moved(seq)
			moved++
			full = 0
		case did == isFull:
			l.add(project)
			full++
		}
	}
	return moved, err
}

// outcome says how a project's turn ended.
type outcome int

const (
	// isEmpty: the project has no command in the line.
	isEmpty outcome = iota
	// isFull: as many calls of the project are at the workers as may be.
	isFull
	// moves: a command was stored for the workers.
	moves
)

// move moves the first command of a project on, and returns the sequence with which it is stored
// for the workers. Those before it whose results are not waited for any more are removed.
func (t *Turns) move(ctx context.Context, l *lineView, project forge.ProjectID, calls *calls) (outcome, uint64, error) {
	for {
		if calls.full(project) {
			return isFull, 0, nil
		}
		m, err := t.head(ctx, l.line, project, calls.bound > 0)
		if errors.Is(err, conn.ErrNotFound) {
			return isEmpty, 0, nil
		}
		if err != nil {
			return isEmpty, 0, err
		}
		// First stored, then removed: a crash between the two leaves the
		// command in both places, and it is known by its subject.
		did, seq, err := t.release(ctx, m, calls)
		if err == nil && did != isFull {
			err = t.remove(ctx, m.Subject)
		}
		if err != nil || did != isEmpty {
			return did, seq, err
		}
	}
}

// head returns the command of a project that is moved on next: what goes on where
// it has begun, which waits only where calls are bounded, and then the first.
func (t *Turns) head(ctx context.Context, line subjects.Line, project forge.ProjectID, bounded bool) (conn.Stored, error) {
	if bounded {
		m, err := t.conn.First(ctx, streams.Commands, line.HeldOn(project))
		if !errors.Is(err, conn.ErrNotFound) {
			return m, err
		}
	}
	return t.conn.First(ctx, streams.Commands, line.HeldOf(project))
}

// release stores a command that was held for the workers. The outcome is
// isEmpty for one that is there already, or whose result is not waited for any
// more, and then it is removed like one that was moved.
func (t *Turns) release(ctx context.Context, m conn.Stored, calls *calls) (outcome, uint64, error) {
	_, c, err := subjects.ParseHeld(m.Subject)
	if err != nil || m.Relayed {
		t.conn.Log.WarnContext(ctx, "what is no command was held; it is removed", "subject", m.Subject, "copy", m.Relayed, "error", err)
		return isEmpty, 0, nil
	}
	wanted, err := t.journal.Wanted(ctx, c.To, c.Attempt)
	if _, newer := errors.AsType[*wire.UnknownError](err); newer {
		wanted, err = true, nil // its worker asks again
	}
	if err != nil || !wanted {
		return isEmpty, 0, err
	}
	// The group is that of the project now, not that of the line: a project may have moved since.
	ready, err := t.groups.Command(&c)
	if err != nil {
		return isEmpty, 0, err
	}
	msg, err := t.conn.Message(ready, m.Data)
	if err != nil {
		return isEmpty, 0, err
	}
	msg.Header.Set(wire.HeaderIssued, m.Header.Get("Nats-Time-Stamp"))
	return calls.store(ctx, c.To.Project, msg)
}

// publish stores a message on a condition, and returns its sequence; 0: the condition was not met.
func publish(ctx context.Context, c *conn.Conn, m *nats.Msg) (uint64, error) {
	ack, err := c.Publish(ctx, m)
	if refused, _ := conn.WrongSequence(err); refused {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("move a command on: %w", err)
	}
	return ack.Sequence, nil
}
