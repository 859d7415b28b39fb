package local

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
)

// LoadAll returns everything that is known of every intent of a project, in no
// order, from one reading of all journals. Intents of which records are missing
// are left out.
func LoadAll(ctx context.Context, b *bus.Bus, project forge.ProjectID) ([]forge.View, error) {
	all := newViews()
	following, stop := context.WithCancel(ctx)
	defer stop()
	err := b.Journal.Follow(following, project, 0, journal.Follower{
		Record: func(key forge.Key, seq uint64, rec forge.Record) error {
			all.apply(key, seq, &rec)
			return nil
		},
		CaughtUp: func() error {
			stop()
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var list []forge.View
	for key, f := range all.machines {
		if intent, ok := f.machine.(*flow.Intent); ok && f.lost == nil && !key.IsProject() {
			v := intent.View()
			v.Seq = f.seq
			list = append(list, v)
		}
	}
	return list, nil
}
