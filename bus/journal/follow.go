package journal

import (
	"context"
	"fmt"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Follower is told what is in the journals of intents, and then what comes in. An error of
// either function ends Follow with that error.
type Follower struct {
	// Record is called with every record, in order.
	Record func(key forge.Key, seq uint64, rec forge.Record) error
	// Broken, if not nil, is called before a record at which the chain of its journal is
	// broken. Only a Follow from the first record on knows the chains.
	Broken func(key forge.Key, at chain.Break)
	// CaughtUp, if not nil, is called once: when the records that there were at
	// the start have been seen.
	CaughtUp func() error
}

// Follow reads the journals of the intents of a project, or of all projects if it is empty,
// from a sequence on, 0 or 1 standing for the first, and goes on live
// until ctx ends. Then it returns nil. It outlives restarts of the server. An account needs
// the right to make consumers for it, which a runner has not.
func (j *Journal) Follow(ctx context.Context, project forge.ProjectID, from uint64, f Follower) error {
	filter, err := subjects.IntentJournals(project)
	if err != nil {
		return fmt.Errorf("follow journals: %w", err)
	}
	if err := j.following(filter, from, &f).Follow(ctx); err != nil {
		return fmt.Errorf("follow journals: %w", err)
	}
	return nil
}

// following returns what calls the functions of a follower with the records of a filter, from a sequence on.
func (j *Journal) following(filter string, from uint64, to *Follower) *conn.Following {
	var walks map[string]*chain.Walk
	if to.Broken != nil && from <= 1 {
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
				to.Broken(key, *at)
			}
		}
		if !ok {
			return nil
		}
		return to.Record(key, m.Seq, rec)
	}
	// What is there already is set aside or not. What comes later is taken as it comes: no mark is behind it yet.
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
		if live = true; late != nil {
			if err := late.end(); err != nil {
				return err
			}
		}
		if to.CaughtUp == nil {
			return nil
		}
		return to.CaughtUp()
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
