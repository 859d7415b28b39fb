package local

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// LookAtFiles returns the problems of a person's files as they are now: those that the next
// run would find. It changes nothing. No run may be active. The bus is the repository's own,
// and nil if nothing was ever submitted.
func (r *Repository) LookAtFiles(ctx context.Context, b *bus.Bus) ([]forgedir.Problem, error) {
	recorded, err := r.Problems()
	if err != nil {
		return nil, err
	}
	known := map[forge.IntentID][]forge.IntentID{}
	if b != nil {
		all, err := b.Journal.Intents(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		for _, id := range all {
			known[id] = nil
		}
	}
	var current func(forge.IntentID) (forge.View, bool)
	if len(known) > 0 { // otherwise there are no intents, or the store was removed
		current = func(id forge.IntentID) (forge.View, bool) {
			v, err := runner.View(ctx, b, forge.Key{Project: r.Project, Intent: id})
			return v, err == nil
		}
	}
	inputs, found, err := forgedir.Look(ctx, r.Root, forgedir.Options{Project: r.Project, Actor: r.Actor}, current)
	if err != nil {
		return nil, err
	}
	inputs, foreign, err := r.ofPerson(ctx, inputs)
	if err != nil {
		return nil, err
	}
	found = append(found, foreign...)
	more, err := r.refusedInputs(ctx, b, inputs, known)
	if err != nil {
		return nil, err
	}
	found = append(found, more...)
	for i := range recorded { // of files that are only shown, and of the store
		if !looked(recorded[i].Path) {
			found = append(found, recorded[i])
		}
	}
	return found, nil
}

// looked reports whether a file is one that LookAtFiles reads itself.
func looked(path string) bool {
	return slices.ContainsFunc([]string{layout.Drafts, layout.Intents}, func(dir string) bool {
		return strings.HasPrefix(path, layout.Shown(dir)+"/")
	})
}

// refusedInputs returns the problems of files that can be read and would be refused.
func (r *Repository) refusedInputs(
	ctx context.Context, b *bus.Bus, inputs []forgedir.Input, known map[forge.IntentID][]forge.IntentID,
) (found []forgedir.Problem, err error) {
	var asks, changes []forgedir.Input
	for _, in := range inputs {
		if in.Draft() != nil {
			asks = append(asks, in)
		} else {
			changes = append(changes, in)
		}
	}
	if base, err := r.Base(ctx); err == nil { // otherwise doctor and run say what is wrong
		asks, found = CheckAllNames(base.Config, asks)
	}
	asks, more := drafts.CheckDependencies(asks, known)
	found = append(found, more...)
	if b == nil {
		return found, nil
	}
	d := &filesSync{bus: b, repo: r, log: slog.New(slog.DiscardHandler)}
	for _, in := range append(asks, changes...) {
		n, refusal, err := d.rehearse(ctx, in)
		if err != nil {
			return nil, err
		}
		if refusal != nil {
			found = append(found, in.Refused(n, *refusal, nil))
		}
	}
	return found, nil
}
