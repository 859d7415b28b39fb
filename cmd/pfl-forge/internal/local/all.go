package local

import (
	"context"
	"fmt"

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
	err := b.Journal.Each(ctx, forge.Key{Project: project}, func(e *journal.Entry) error {
		if e.Broken != nil {
			all.breaks(e.Key, *e.Broken)
		}
		switch {
		case e.Record != nil:
			all.apply(e.Key, e.Seq, e.Record)
		case e.Other == "":
			return fmt.Errorf("only a newer version of pfl-forge understands message %d of %s", e.Seq, e.Key)
		}
		return nil
	})
	if err != nil {
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
