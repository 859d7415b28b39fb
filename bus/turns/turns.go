package turns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Turns says where a command is stored, and moves those on that are held. Until
// Begin is called, nothing is held. It is safe for concurrent use.
type Turns struct {
	conn *conn.Conn
	// journal says whether the result of a command is still waited for when its turn comes.
	journal *journal.Journal
	// groups has the group of each project, and so its lines.
	groups subjects.Groups
	// wake tells Run that something is held; it has room for one.
	wake chan struct{}

	// again counts who dispatches anew what may be there already.
	again atomic.Int32

	mu sync.Mutex
	// on says that projects take turns.
	on bool
	// bound is how many calls of a project may be at the workers; 0: any number.
	bound int
	// lines has those lines in which something was ever placed or found. None
	// is removed: there are as many as steps and groups.
	lines map[subjects.Line]*lineView
}

// New returns the Turns of a connection.
func New(c *conn.Conn, j *journal.Journal, groups subjects.Groups) *Turns {
	return &Turns{conn: c, journal: j, groups: groups, wake: make(chan struct{}, 1), lines: map[subjects.Line]*lineView{}}
}

// Takes reports whether commands of a step wait for their turn. What the project itself
// does, merges and the like, goes ahead of all: everything else of the project waits for it.
func Takes(step forge.Step) bool { return !step.OfProject() && !subjects.ForAnyone(step) }

// Begin has projects take turns from now on, with a bound on the calls of each; 0: none.
func (t *Turns) Begin(bound int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.bound = true, bound
}

// Bounded reports whether the calls of projects are counted: then what is at
// the workers stays there until they are done with it.
func (t *Turns) Bounded() bool {
	_, bound := t.settings()
	return bound > 0
}

// settings returns whether projects take turns, and the bound on the calls of each.
func (t *Turns) settings() (on bool, bound int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.on, t.bound
}

// Again says, until done is called, that commands are dispatched which may be
// at the workers already. Without that, such a command would be held as well,
// and counted, until its turn shows that it is there.
func (t *Turns) Again() (done func()) {
	t.again.Add(1)
	return func() { t.again.Add(-1) }
}

// Answered says that the result of an attempt of an intent was decided on. Where calls are
// counted, a command that is for one replica is removed: its replica may be gone, and whoever did
// its work cannot take it away, so that it would be counted for as long as the stream keeps it.
func (t *Turns) Answered(ctx context.Context, r *forge.Result) error {
	on, bound := t.settings()
	if !on || !Takes(r.Attempt.Step) || r.IsStart() {
		return nil
	}
	if bound > 0 {
		subject, err := subjects.Addressed(r.To, r.Attempt)
		if err != nil {
			return nil //nolint:nilerr // there is no command of such an attempt
		}
		return t.remove(ctx, subject)
	}
	t.view(t.groups.LineOf(&forge.Command{To: r.To, Attempt: r.Attempt})).answered()
	return nil
}

// Restore makes the consumers that count what is held, and finds what others have left there.
func (t *Turns) Restore(ctx context.Context) error {
	if on, _ := t.settings(); !on {
		return nil
	}
	all := slices.Sorted(maps.Values(t.groups))
	for _, group := range slices.Compact(append([]subjects.Group{""}, all...)) {
		for _, step := range forge.Steps() {
			if !Takes(step) {
				continue
			}
			line := subjects.Line{Step: step, Group: group}
			_, err := t.conn.EnsureConsumer(ctx, conn.Source{Stream: streams.Commands, Config: jetstream.ConsumerConfig{
				Durable: line.Counter(), FilterSubject: line.Held(), AckPolicy: jetstream.AckExplicitPolicy,
				AckWait: streams.AckWait, MaxDeliver: -1, MaxAckPending: 1,
			}})
			if err != nil {
				return fmt.Errorf("ensure consumer %s: %w", line.Counter(), err)
			}
		}
	}
	return t.find(ctx)
}

// view returns the view of a line, which is made when it is asked for first.
func (t *Turns) view(line subjects.Line) *lineView {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[line]
	if l == nil {
		l = &lineView{line: line, conn: t.conn}
		t.lines[line] = l
	}
	return l
}

// Place decides at the moment at which a command is dispatched, which may be again: a
// held command has one subject, as one at the workers has, and is stored there once.
//
// It returns the subject on which the command is to be stored: where workers take it, or where
// it waits for its turn. The caller calls stored with its sequence when it is stored, or with 0.
func (t *Turns) Place(ctx context.Context, c *forge.Command) (subject string, stored func(seq uint64), err error) {
	ready, err := t.groups.Command(c)
	on, bound := t.settings()
	again := t.again.Load() > 0
	if err != nil || !on || !Takes(c.Attempt.Step) || bound == 0 && c.Replica != "" { // the last goes on with what it has begun
		return ready, func(uint64) {}, err
	}
	l := t.view(t.groups.LineOf(c))
	if bound == 0 {
		if enters, err := l.enter(ctx); enters || err != nil {
			return ready, l.entered, err
		}
	}
	if again { // one that is at the workers already is no new one
		_, err = t.conn.Last(ctx, streams.Commands, ready)
		if !errors.Is(err, conn.ErrNotFound) {
			return ready, func(uint64) {}, err
		}
	}
	subject, err = t.groups.Hold(c)
	return subject, func(uint64) {
		l.add(c.To.Project)
		t.poke()
	}, err
}

// poke has Run look at once.
func (t *Turns) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Withdraw removes commands of an intent that wait for their turn: those of the attempts,
// or all. What this process does not know yet is found to be of no use when its turn comes.
//
// Where calls are counted, those of the attempts that are at the workers for
// one replica are removed as well: a replica that is gone reports no result of
// them, and they would be counted for as long as the stream keeps them.
func (t *Turns) Withdraw(ctx context.Context, k forge.Key, attempts []forge.Attempt, all bool) error {
	var filters []string
	if t.Bounded() {
		for _, a := range attempts {
			if subject, err := subjects.Addressed(k, a); err == nil && Takes(a.Step) {
				filters = append(filters, subject)
			}
		}
	}
	if len(t.busy()) == 0 {
		all, attempts = false, nil
	}
	if all {
		filters = append(filters, subjects.HeldOfIntent(k))
		attempts = nil
	}
	for _, a := range attempts {
		if Takes(a.Step) {
			both := subjects.HeldAttempt(k, a)
			filters = append(filters, both[:]...)
		}
	}
	for _, filter := range filters {
		if err := t.remove(ctx, filter); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the messages that a filter matches from the stream of commands.
func (t *Turns) remove(ctx context.Context, filter string) error {
	var done struct{}
	return t.conn.API(ctx, "STREAM.PURGE."+streams.Commands, map[string]string{"filter": filter}, &done)
}

// busy returns the lines with waiting commands, sorted by step, the steps nearest to
// the end of the flow first: what was begun is finished before other things are begun.
func (t *Turns) busy() []*lineView {
	t.mu.Lock()
	lines := slices.Collect(maps.Values(t.lines))
	t.mu.Unlock()
	lines = slices.DeleteFunc(lines, func(l *lineView) bool { return !l.busy() })
	steps := forge.Steps()
	slices.SortFunc(lines, func(a, b *lineView) int {
		if n := slices.Index(steps, b.line.Step) - slices.Index(steps, a.line.Step); n != 0 {
			return n
		}
		return slices.Compare([]subjects.Group{a.line.Group}, []subjects.Group{b.line.Group})
	})
	return lines
}
