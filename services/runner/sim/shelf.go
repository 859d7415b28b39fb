package sim

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// shelf has the snapshots of the project, true ones and others. It has a chance of its own, so that what else happens
// in a world is the same with any snapshots.
type shelf struct {
	rng  *rand.Rand
	kept *machine.Snapshot
}

// shelved reports whether the runners of a world begin with snapshots. It is one world in eight, of every kind: snapshots cost
// more than all else in a world.
func shelved(seed uint64) bool { return seed/16%8 == 3 }

// newShelf returns the shelf of a world.
func newShelf(seed uint64) shelf { return shelf{rng: rand.New(rand.NewPCG(seed, 85))} }

// headAt is the head of a journal with n records. Of one journal there are no two records with the same number.
func headAt(n int) chain.Head {
	if n == 0 {
		return chain.Head{}
	}
	return chain.Head{Seq: uint64(n), Hash: chain.Hash{byte(n), byte(n >> 8), byte(n >> 16)}}
}

// After implements machine.Journal.
func (w *world) After(_ context.Context, key forge.Key, seq uint64) (chain.Tail, error) {
	records := w.journal[key]
	n := len(records)
	if seq == 0 {
		return chain.Tail{Records: records, Head: headAt(n), Behind: uint64(n)}, nil
	}
	if seq > uint64(n) {
		return chain.Tail{}, nil
	}
	at := int(seq)
	return chain.Tail{
		At: headAt(at), Of: &records[at-1], Records: records[at:], Head: headAt(n), Upto: seq, Behind: uint64(n) - seq,
	}, nil
}

// keep has a runner make a snapshot now and then. What it was made of may be one itself.
func (w *world) keep(d *machine.Driver) {
	key := forge.Key{Project: project}
	if !shelved(w.seed) || w.shelf.rng.IntN(30) > 0 || len(w.journal[key]) == 0 {
		return
	}
	l, err := d.Load(context.Background(), key)
	if err == nil {
		err = d.Keep(context.Background(), key, l)
	}
	if err != nil && w.firstViolation == nil {
		w.firstViolation = err
	}
}

// Keep implements machine.Snapshots.
func (w *world) Keep(_ context.Context, _ forge.Key, made *machine.Snapshot) error {
	w.shelf.kept = made
	return nil
}

// Newest implements machine.Snapshots: most are what a runner has kept, a while ago. Of the others, each describes another
// state than that of the record which it names, or cannot be read.
func (w *world) Newest(_ context.Context, key forge.Key) (*machine.Snapshot, error) {
	records := w.journal[key]
	n := len(records)
	which := w.shelf.rng.IntN(10)
	if which > 4 || n < 2 {
		return w.shelf.kept, nil
	}
	other := machine.Snapshot{Rules: flow.Rules(), Seq: uint64(n), Hash: headAt(n).Hash, Messages: uint64(n)}
	other.State = another(key, records, w.shelf.rng.IntN(n))
	switch which {
	case 0:
		return nil, errors.New("no answer")
	case 1:
		other.Rules = "others"
	case 2:
		other.Hash = chain.Start("another journal")
	case 3:
		other.State = other.State[:len(other.State)/2]
	default:
		other.Seq += 1 + uint64(w.shelf.rng.IntN(3))
	}
	return &other, nil
}

// another returns the state of a project to which less has happened than its journal says. It says the same about when
// the last decision was.
func another(key forge.Key, records []forge.Record, without int) []byte {
	state, err := machine.Fold(key, records[:len(records)-without]).Snapshot()
	if err != nil {
		panic(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(state, &fields); err != nil {
		panic(err)
	}
	if fields["UpdatedAt"], err = json.Marshal(records[len(records)-1].Summary.UpdatedAt); err != nil {
		panic(err)
	}
	if state, err = json.Marshal(fields); err != nil {
		panic(err)
	}
	return state
}
