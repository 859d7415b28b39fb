package loss

import (
	"context"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Shown says how much of its store the files of a project show: of each intent
// the sequence of the message that its file follows from, and of the project's
// own journal that of the newest message whose consequences are shown.
type Shown struct {
	Intents map[forge.IntentID]uint64
	Project uint64
}

// Between compares a store with the files, and returns how much less the store has:
// of intents by the sequences of their last messages, and of the project by the
// head of its journal; nil if nothing is lost. The bus is nil if there is no store.
func Between(
	ctx context.Context, b *bus.Bus, project forge.ProjectID, shown Shown, stored map[forge.IntentID]uint64, head chain.Head,
) (*Error, error) {
	e := &Error{Lost: Of(shown.Intents, stored)}
	switch {
	case b == nil:
	case head.Seq < shown.Project:
		e.Damage = fmt.Sprintf("the journal of the project ends at %d, and .forge shows what follows from its message %d", head.Seq, shown.Project)
	case head.Broken != nil:
		e.Damage = "the journal of the project: " + head.Broken.Error()
	}
	if len(e.Lost) == 0 && e.Damage == "" {
		return nil, nil //nolint:nilnil // nothing is lost
	}
	if b == nil || slices.ContainsFunc(e.Lost, func(l Intent) bool { return l.Stored > 0 }) {
		return e, nil
	}
	var err error
	if e.Others, err = b.Journal.Projects(ctx); slices.Contains(e.Others, project) || len(e.Lost) == 0 {
		e.Others = nil
	}
	return e, err
}

// Contradiction returns how the journals of a project contradict one another,
// or themselves; empty if they do not.
func Contradiction(ctx context.Context, b *bus.Bus, project forge.ProjectID) (string, error) {
	audit := chain.NewAudit(func(subject string) bool {
		key, err := subjects.ParseJournal(subject)
		return err == nil && key.Project == project
	})
	err := b.Journal.Each(ctx, forge.Key{Project: project}, func(e *journal.Entry) error {
		audit.Add(&e.Link)
		return nil
	})
	if err != nil {
		return "", err
	}
	list := audit.Findings()
	if n := slices.IndexFunc(list, func(f chain.Finding) bool { return f.Breaks() }); n >= 0 {
		return list[n].Journal + ": " + list[n].Detail, nil
	}
	return "", nil
}
