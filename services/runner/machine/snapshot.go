package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
)

// Snapshot is the state of a machine at one message of its journal. It spares the fold up to there and
// is never the truth: where anything about it does not fit, the whole journal is folded.
type Snapshot struct {
	// Rules names the rules that led to the state, as the function Rules does.
	Rules string
	// Seq and Hash are those of the last message of the journal that the state follows from, and Messages counts
	// those up to it.
	Seq      uint64
	Hash     chain.Hash
	Messages uint64
	// State has the answer of Machine.Snapshot.
	State json.RawMessage
}

// Snapshots keeps the newest snapshot of each machine. What it has may be old, damaged, or not be there at all.
type Snapshots interface {
	// Newest returns the last one that was kept; nil if there is none.
	Newest(ctx context.Context, key forge.Key) (*Snapshot, error)
	// Keep has a snapshot take the place of the one before.
	Keep(ctx context.Context, key forge.Key, s *Snapshot) error
}

// Loaded is a machine of its own, in the state at the end of its journal.
type Loaded struct {
	Machine

	// Head is that end.
	Head chain.Head
	// Messages counts those of the journal.
	Messages uint64
	// Folded counts the records that were read and folded.
	Folded int
	// Whole says why the journal was folded from its beginning, for a person; empty if it was not.
	Whole string
}

// Resume has the driver begin with snapshots where projects are loaded. Journals of intents are short.
func (d *Driver) Resume(from Snapshots) { d.snapshots = from }

// Load returns a machine, made of its snapshot and the journal behind that, or else of the whole journal. It is not
// the one that decides. Error: ErrDamaged for a journal that has lost records or whose chain is broken, on which nothing is
// decided any more.
func (d *Driver) Load(ctx context.Context, key forge.Key) (*Loaded, error) {
	var whole string
	if d.snapshots != nil && key.IsProject() {
		l, why, err := d.resume(ctx, key)
		if l != nil || err != nil {
			return l, err
		}
		whole = why
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
	return &Loaded{Machine: m, Head: tail.Head, Messages: tail.Behind, Folded: len(tail.Records), Whole: whole}, nil
}

// resume returns the machine that a snapshot and the journal behind it lead to. It returns none, and says why, where
// the whole journal has to be folded.
func (d *Driver) resume(ctx context.Context, key forge.Key) (l *Loaded, why string, err error) {
	s, err := d.snapshots.Newest(ctx, key)
	switch {
	case err != nil:
		return nil, "the snapshot cannot be read: " + err.Error(), nil
	case s == nil:
		return nil, "there is no snapshot", nil
	case s.Rules != Rules():
		return nil, "the snapshot was made by other rules", nil
	}
	tail, err := d.journal.After(ctx, key, s.Seq)
	if err != nil {
		return nil, "", fmt.Errorf("loading %s: %w", key, err)
	}
	if tail.At.Seq != s.Seq || tail.At.Hash != s.Hash || s.Seq == 0 {
		return nil, "the snapshot is of another history than the journal", nil
	}
	if tail.Upto < s.Messages {
		return nil, "the journal had more messages when the snapshot was made", nil
	}
	m, err := restore(key, s.State)
	if err != nil {
		return nil, "the snapshot is damaged: " + err.Error(), nil
	}
	if tail.Of != nil && !Intact(m, []forge.Record{*tail.Of}) {
		return nil, "the snapshot is not the state of its record", nil
	}
	fold(m, tail.Records)
	if tail.Head.Broken != nil || !Intact(m, tail.Records) {
		return nil, "what follows on the snapshot does not fit it", nil // a fold of all says what is damaged
	}
	return &Loaded{Machine: m, Head: tail.Head, Messages: s.Messages + tail.Behind, Folded: len(tail.Records)}, "", nil
}

// Keep makes the snapshot of a project that was loaded. It is read back first: what does not come out as it went in
// is not kept.
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
func restore(key forge.Key, state []byte) (Machine, error) { return flow.RestoreProject(key, state) }
