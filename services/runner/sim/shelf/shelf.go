// Package shelf has the snapshots of a simulated project: true ones of any age,
// and others that a runner must not go on with.
//
// A world with the same seed goes the same way with any snapshots, as long as runners believe the
// right ones: the shelf has a chance of its own, and takes nothing from the chances of the world.
package shelf

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// Shelf keeps the newest snapshot of one project. It implements machine.Snapshots.
type Shelf struct {
	rng  *rand.Rand
	kept *machine.Snapshot
	// records returns the journal of the project.
	records func() []forge.Record
}

// New returns the shelf of a world; nil if its runners begin without snapshots. It
// is one world in eight, of every kind, that has them: they cost more than all else.
func New(seed uint64, records func() []forge.Record) *Shelf {
	if seed/16%8 != 3 {
		return nil
	}
	return &Shelf{rng: rand.New(rand.NewPCG(seed, 85)), records: records}
}

// Head returns the head of a journal with n records.
func Head(n int) chain.Head {
	if n == 0 {
		return chain.Head{}
	}
	// There are no two journals in a world that have another record in the same place.
	return chain.Head{Seq: uint64(n), Hash: chain.Hash{byte(n), byte(n >> 8), byte(n >> 16)}}
}

// After returns a journal behind its record number seq, as machine.Journal does.
func After(records []forge.Record, seq uint64) chain.Tail {
	n := uint64(len(records))
	switch {
	case seq == 0:
		return chain.Tail{Records: records, Head: Head(len(records)), Behind: n}
	case seq > n:
		return chain.Tail{}
	}
	return chain.Tail{
		At: Head(int(seq)), Of: &records[seq-1], Records: records[seq:], Head: Head(len(records)), Upto: seq, Behind: n - seq,
	}
}

// Use has a new runner begin with the snapshots, if its world has some.
func (s *Shelf) Use(d *machine.Driver) {
	if s != nil {
		d.Resume(s)
	}
}

// Make has a runner make a snapshot now and then. It may begin with an older
// one itself, so that an error in one is handed on.
func (s *Shelf) Make(d *machine.Driver, key forge.Key) error {
	if s == nil || s.rng.IntN(30) > 0 || len(s.records()) == 0 {
		return nil
	}
	l, err := d.Load(context.Background(), key)
	if err != nil {
		return err
	}
	return d.Keep(context.Background(), key, l)
}

// Keep implements machine.Snapshots.
func (s *Shelf) Keep(_ context.Context, _ forge.Key, made *machine.Snapshot) error {
	s.kept = made
	return nil
}

// Newest implements machine.Snapshots: most of the time it returns the one that
// a runner has kept, a while ago. Each of the others describes another state
// than that of the record which it names, or cannot be read.
func (s *Shelf) Newest(_ context.Context, key forge.Key) (*machine.Snapshot, error) {
	records := s.records()
	n := len(records)
	which := s.rng.IntN(10)
	if which > 4 || n < 2 {
		if s.kept == nil {
			return nil, machine.ErrNoSnapshot
		}
		return s.kept, nil
	}
	other := machine.Snapshot{Rules: machine.Rules(), Seq: uint64(n), Hash: Head(n).Hash, Messages: uint64(n)}
	state, err := another(key, records, s.rng.IntN(n))
	if err != nil {
		return nil, err
	}
	other.State = state
	switch which {
	case 0:
		return nil, errors.New("no answer")
	case 1: // a runner of another version made it
		other.Rules = "others"
	case 2: // the journal was restored from a backup, and went on in another way
		other.Hash = chain.Start("another journal")
	case 3: // half of it was stored
		other.State = other.State[:len(other.State)/2]
	default: // the journal was restored from a backup that is older
		other.Seq += 1 + uint64(s.rng.IntN(3))
	}
	return &other, nil
}

// another returns the state of a project to which less has happened than its journal says. It
// says the same about when the last decision was, so that this alone does not give it away.
func another(key forge.Key, records []forge.Record, without int) ([]byte, error) {
	state, err := machine.Fold(key, records[:len(records)-without]).Snapshot()
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(state, &fields); err != nil {
		return nil, err
	}
	if fields["UpdatedAt"], err = json.Marshal(records[len(records)-1].Summary.UpdatedAt); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}
