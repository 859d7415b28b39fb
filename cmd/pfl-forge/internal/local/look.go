package local

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local/loss"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// Look is a look at a person's files beside the store. It changes nothing. Close ends it.
type Look struct {
	repo  *Repository
	bus   *bus.Bus // the repository's own; nil if nothing was ever submitted
	files *forgedir.Look
}

// Look begins a look at the files; one that is quick goes on from the one
// before, see forgedir.OpenLook.
func (r *Repository) Look(b *bus.Bus, quick bool) (*Look, error) {
	files, err := forgedir.OpenLook(r.Root, forgedir.Options{Project: r.Project, Actor: r.Actor}, quick)
	return &Look{r, b, files}, err
}

// Close ends the look.
func (l *Look) Close() error { return l.files.Close() }

// Lost is Repository.FindLost, in a time that does not grow with the project's journal: it follows
// the chain of that journal from the message on that the files show, and not the part before,
// which was followed when more was decided. stored has the sequences of the intents' journals.
func (l *Look) Lost(ctx context.Context, stored map[forge.IntentID]uint64) (*loss.Error, error) {
	shown, project := l.files.Shown()
	if len(shown) == 0 && l.bus == nil {
		return nil, nil //nolint:nilnil // nothing is lost
	}
	if l.bus == nil || project == 0 {
		return l.repo.compared(ctx, l.bus, shown, project)
	}
	tail, err := l.bus.Journal.After(ctx, forge.Key{Project: l.repo.Project}, project)
	if err != nil {
		return nil, err
	}
	if tail.Head.Seq == 0 { // the message is not there, or decides nothing: all messages say why
		return l.repo.compared(ctx, l.bus, shown, project)
	}
	return loss.Between(ctx, l.bus, l.repo.Project, loss.Shown{Intents: shown, Project: project}, stored, tail.Head)
}

// Problems returns the problems of a person's files as they are now: those that the next run would
// find. No run may be active. stored has the intents that there are; nil: they are asked for.
func (l *Look) Problems(ctx context.Context, stored map[forge.IntentID]uint64) ([]forgedir.Problem, error) {
	recorded, err := l.repo.Problems()
	if err != nil {
		return nil, err
	}
	known := make(map[forge.IntentID][]forge.IntentID, len(stored))
	for id := range stored {
		known[id] = nil
	}
	if stored == nil && l.bus != nil {
		all, err := l.bus.Journal.Intents(ctx, l.repo.Project)
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
			v, err := runner.View(ctx, l.bus, forge.Key{Project: l.repo.Project, Intent: id})
			return v, err == nil
		}
	}
	inputs, found, err := l.files.Read(ctx, current)
	if err != nil {
		return nil, err
	}
	inputs, foreign, err := l.repo.ofPerson(ctx, inputs)
	if err != nil {
		return nil, err
	}
	found = append(found, foreign...)
	more, err := l.repo.refusedInputs(ctx, l.bus, inputs, known)
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

// looked reports whether a file is one that Look reads itself.
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
