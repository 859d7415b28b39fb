package turns

import (
	"context"
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// State says how many calls of a project wait for their turn.
type State struct {
	// Held is how many wait.
	Held int `json:"held" yaml:"held"`
	// Calls is how many are at the workers, under way or about to be taken.
	Calls int `json:"calls" yaml:"calls"`
	// Bound is how many may be there; 0: any number, and what waits does so
	// because other projects have their turns.
	Bound int `json:"bound,omitempty" yaml:"bound,omitempty"`
}

// Of returns how many calls of a project wait for their turn, as far as this
// process knows, or nil if none does.
func (t *Turns) Of(ctx context.Context, project forge.ProjectID) (*State, error) {
	_, bound := t.settings()
	s := State{Bound: bound}
	for _, l := range t.busy() {
		if !l.has(project) {
			continue
		}
		held, err := t.list(ctx, l.line.HeldOf(project))
		if err != nil {
			return nil, err
		}
		s.Held += len(held)
	}
	if s.Held == 0 {
		return nil, nil //nolint:nilnil // there is nothing to tell
	}
	err := t.atWorkers(ctx, subjects.AtWorkers(project), func(*forge.Command, string) { s.Calls++ })
	return &s, err
}

// has reports whether a command of a project may be in the line.
func (l *lineView) has(project forge.ProjectID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.serving || slices.Contains(l.ring, project)
}
