package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Follower is told what is in the journals, and then what comes in. An error of
// either function ends Follow with that error.
type Follower struct {
	// Record is called with every record of the intents, in order.
	Record func(key forge.Key, seq uint64, rec forge.Record) error
	// Project, if not nil, is called with every record of the projects, in
	// order; between those and the intents' there is none. It is not called while Record
	// is.
	Project func(key forge.Key, seq uint64, rec forge.Record) error
	// Broken, if not nil, is called before a record at which the chain of its journal is
	// broken. Only a Follow from the first record on knows the chains.
	Broken func(key forge.Key, at chain.Break)
	// CaughtUp, if not nil, is called once: when the records that there were at
	// the start have been seen.
	CaughtUp func() error
}

// Follow reads the journals of a project, or of all projects if it is empty,
// those of intents from a sequence on, 0 or 1 standing for the first, and goes on live
// until ctx ends. Then it returns nil. It outlives restarts of the server. It takes the right
// to make consumers, or a runner that reads for a person; a runner itself has it not.
func (j *Journal) Follow(ctx context.Context, project forge.ProjectID, from uint64, f Follower) error {
	intents, err := subjects.IntentJournals(project)
	if err != nil {
		return fmt.Errorf("follow journals: %w", err)
	}
	projects, err := subjects.ProjectJournals(project)
	if err != nil {
		return fmt.Errorf("follow journals: %w", err)
	}
	parts := []*conn.Following{j.followRecords(intents, from, f.Record, f.Broken)}
	if f.Project != nil {
		parts = append(parts, j.followRecords(projects, 0, f.Project, f.Broken))
	}
	if err := together(ctx, parts, f.CaughtUp); err != nil {
		return fmt.Errorf("follow journals: %w", err)
	}
	return nil
}

// followRecords returns a Following of the records of a filter, from a sequence
// on.
func (j *Journal) followRecords(
	filter string, from uint64, do func(forge.Key, uint64, forge.Record) error, broken func(forge.Key, chain.Break),
) *conn.Following {
	var walks map[string]*chain.Walk
	if broken != nil && from <= 1 {
		walks = map[string]*chain.Walk{}
	}
	take := func(ctx context.Context, m conn.Stored, by *Aside) error {
		rec, ok, err := j.record(ctx, m, by)
		if err != nil {
			return err
		}
		key, err := subjects.ParseJournal(m.Subject)
		if err != nil {
			return err
		}
		if walks != nil {
			if at := step(walks, m, &rec, ok); at != nil {
				broken(key, *at)
			}
		}
		if !ok {
			return nil
		}
		return do(key, m.Seq, rec)
	}
	// What is there already is set aside or not. What comes later is taken as
	// it comes: no mark is behind it yet.
	var late *held
	live := false
	f := &conn.Following{Conn: j.conn, Stream: journalStream(filter), Filters: []string{filter}, Next: max(from, 1)}
	f.Take = func(ctx context.Context, m conn.Stored) error {
		if live {
			return take(ctx, m, nil)
		}
		if late == nil {
			late = hold(func(m conn.Stored, by *Aside) error { return take(ctx, m, by) })
		}
		return late.next(m)
	}
	f.ReachedEnd = func() error {
		if live = true; late == nil {
			return nil
		}
		return late.end()
	}
	return f
}

// step takes a message into the chain of its journal, and returns the break that it shows.
func step(walks map[string]*chain.Walk, m conn.Stored, rec *forge.Record, ok bool) *chain.Break {
	walk := walks[m.Subject]
	if walk == nil {
		walk = chain.NewWalk(m.Subject)
		walks[m.Subject] = walk
	}
	if !ok {
		walk.Other(m.Seq, m.Data)
		return nil
	}
	return walk.Record(m.Seq, rec.Previous, m.Data)
}

// together follows several streams at the same time, and calls one function at a time.
// caughtUp, if not nil, is called when all have caught up.
func together(ctx context.Context, parts []*conn.Following, caughtUp func() error) error {
	var group sync.WaitGroup
	var calls sync.Mutex
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	behind := len(parts)
	for _, f := range parts {
		take, reached := f.Take, f.ReachedEnd
		f.Take = func(ctx context.Context, m conn.Stored) error {
			calls.Lock()
			defer calls.Unlock()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return take(ctx, m)
		}
		f.ReachedEnd = func() error {
			calls.Lock()
			defer calls.Unlock()
			if err := reached(); err != nil {
				return err
			}
			if behind--; behind > 0 || caughtUp == nil || ctx.Err() != nil {
				return nil
			}
			return caughtUp()
		}
		group.Go(func() {
			if err := f.Follow(ctx); err != nil {
				stop(err)
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, ctx.Err()) {
		return err
	}
	return nil
}
