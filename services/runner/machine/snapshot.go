package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
)

// Snapshot is the state of a machine at one message of its journal. It spares the fold up to there
// and is never the truth: where anything about it does not fit, the whole journal is folded.
type Snapshot struct {
	// Rules names the rules that led to the state, as the function Rules does.
	Rules string
	// Seq and Hash are those of the last message of the journal that the state
	// follows from, and Messages counts those up to it.
	Seq      uint64
	Hash     chain.Hash
	Messages uint64
	// State has the answer of Machine.Snapshot.
	State json.RawMessage
}

// ErrNoSnapshot is returned by Snapshots.Newest where none was kept.
var ErrNoSnapshot = errors.New("there is no snapshot")

// Snapshots keeps the newest snapshot of each machine. What it has may be old,
// damaged, or not be there at all.
type Snapshots interface {
	// Newest returns the last one that was kept. Error: ErrNoSnapshot.
	Newest(ctx context.Context, key forge.Key) (*Snapshot, error)
	// Keep has a snapshot take the place of the one before.
	Keep(ctx context.Context, key forge.Key, s *Snapshot) error
}

// A decision on a project that is not cached waits for its snapshot, but never
// for long: without one it takes as long as it did before there were any. A
// store that was silent is not asked again for a while.
const (
	patience = 2 * time.Second
	pause    = time.Minute
)

// Loaded is a machine of its own, in the state at the end of its journal.
type Loaded struct {
	Machine

	// Head is that end.
	Head chain.Head
	// Messages counts those of the journal.
	Messages uint64
	// Folded counts the records that were read and folded, and Recent has the
	// last of these, at most a few hundred.
	Folded int
	Recent []forge.Record
	// Whole says why the journal was folded from its beginning, for a person; empty if it was not.
	Whole string
}

// Resume has the driver begin with snapshots where projects are loaded.
// Journals of intents are short.
func (d *Driver) Resume(from Snapshots) { d.snapshots = from }

// Load returns a machine, made of its snapshot and the journal behind that, or else of
// the whole journal. It is not the one that decides. Error: ErrDamaged for a journal
// that has lost records or whose chain is broken, on which nothing is decided any more.
func (d *Driver) Load(ctx context.Context, key forge.Key) (*Loaded, error) {
	var whole string
	if d.snapshots != nil && key.IsProject() {
		l, err := d.resume(ctx, key)
		no, ok := errors.AsType[*unfit](err)
		if !ok {
			return l, err
		}
		whole = no.why
	}
	tail, err := d.journal.After(ctx, key, 0)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", key, err)
	}
	if tail.Head.Broken != nil {
		return nil, fmt.Errorf("%s: %w: %w", key, tail.Head.Broken, ErrDamaged)
	}
	m := Fold(key, tail.Records)
	if !Intact(m, tail.Records) {
		return nil, fmt.Errorf("%s: %w", key, ErrDamaged)
	}
	return &Loaded{Machine: m, Head: tail.Head, Messages: tail.Behind, Folded: len(tail.Records), Recent: last(tail.Records), Whole: whole}, nil
}

// recent bounds Loaded.Recent.
const recent = 500

// last returns the last of some records, apart from the others, which may go.
func last(list []forge.Record) []forge.Record { return slices.Clone(list[max(0, len(list)-recent):]) }

// GoOn has the machine go on with the records that its journal has by now, and
// calls added with each. It reports false for a journal that does not go on
// from where the machine is: then the machine has to be loaded anew.
func (l *Loaded) GoOn(ctx context.Context, j Journal, key forge.Key, added func(*forge.Record)) (bool, error) {
	newest, err := j.Last(ctx, key)
	if err != nil {
		return true, fmt.Errorf("going on with %s: %w", key, err)
	}
	if newest.Seq == l.Head.Seq {
		return newest.Hash == l.Head.Hash, nil
	}
	tail, err := j.After(ctx, key, l.Head.Seq)
	if err != nil {
		return true, fmt.Errorf("going on with %s: %w", key, err)
	}
	whole := tail.Head.Broken == nil
	if !whole || tail.At.Seq != l.Head.Seq || tail.At.Hash != l.Head.Hash {
		return false, nil
	}
	fold(l.Machine, tail.Records)
	for i := range tail.Records {
		added(&tail.Records[i])
	}
	l.Head, l.Messages = tail.Head, l.Messages+tail.Behind
	return Intact(l.Machine, tail.Records), nil
}

// unfit is the error that a snapshot cannot be gone on with, so that the whole
// journal has to be folded.
type unfit struct{ why string }

func (u *unfit) Error() string { return u.why }

// resume returns the machine that a snapshot and the journal behind it lead to.
// Errors: *unfit, and those of the journal.
func (d *Driver) resume(ctx context.Context, key forge.Key) (*Loaded, error) {
	s, err := d.newest(ctx, key)
	switch {
	case errors.Is(err, ErrNoSnapshot):
		return nil, &unfit{err.Error()}
	case err != nil:
		return nil, &unfit{"the snapshot cannot be read: " + err.Error()}
	case s.Rules != Rules():
		return nil, &unfit{"the snapshot was made by other rules"}
	}
	tail, err := d.journal.After(ctx, key, s.Seq)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", key, err)
	}
	// A sequence alone says nothing: a stream that was restored goes on with
	// the sequences of what it has lost.
	if tail.At.Seq != s.Seq || tail.At.Hash != s.Hash || s.Seq == 0 {
		return nil, &unfit{"the snapshot is of another history than the journal"}
	}
	// A start does not read the messages before the record, so it would not
	// notice that some of them are gone.
	if tail.Upto < s.Messages {
		return nil, &unfit{"the journal had more messages when the snapshot was made"}
	}
	m, err := restore(key, s.State)
	if err != nil {
		return nil, &unfit{"the snapshot is damaged: " + err.Error()}
	}
	// The digest of the store says that the state is the one that was written.
	// This says that it was written for that record.
	if tail.Of != nil && !Intact(m, []forge.Record{*tail.Of}) {
		return nil, &unfit{"the snapshot is not the state of its record"}
	}
	fold(m, tail.Records)
	if tail.Head.Broken != nil || !Intact(m, tail.Records) { // a fold of all says what is damaged
		return nil, &unfit{"what follows on the snapshot does not fit it"}
	}
	return &Loaded{Machine: m, Head: tail.Head, Messages: s.Messages + tail.Behind, Folded: len(tail.Records), Recent: last(tail.Records)}, nil
}

// errSilent says that the store of snapshots is not asked.
var errSilent = errors.New("the store did not answer in time a moment ago")

// newest returns the newest snapshot of a project. It bounds how long the store may take.
func (d *Driver) newest(ctx context.Context, key forge.Key) (*Snapshot, error) {
	d.mu.Lock()
	wait := !d.silent.IsZero() && d.clock().Sub(d.silent) < pause
	d.mu.Unlock()
	if wait {
		return nil, errSilent
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := d.snapshots.Newest(bounded, key)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		d.mu.Lock()
		d.silent = d.clock()
		d.mu.Unlock()
	}
	return s, err
}

// Keep makes the snapshot of a project that was loaded. It is read back first:
// what does not come out as it went in is not kept.
func (d *Driver) Keep(ctx context.Context, key forge.Key, l *Loaded) error {
	state, err := l.Snapshot()
	if err != nil {
		return err
	}
	again, err := restore(key, state)
	if err != nil {
		return err
	}
	read, err := again.Snapshot()
	if err != nil {
		return err
	}
	if !bytes.Equal(read, state) {
		return fmt.Errorf("the state of %s does not come out of a snapshot as it went in", key)
	}
	return d.snapshots.Keep(ctx, key, &Snapshot{Rules: Rules(), Seq: l.Head.Seq, Hash: l.Head.Hash, Messages: l.Messages, State: state})
}

// restore returns the project that a snapshot describes.
func restore(key forge.Key, state []byte) (Machine, error) { return projects.Restore(key, state) }
