// Package changes stores the change of each attempt of an implementer, for
// readers who have no repository.
//
// Package implementer calls Keep before it reports an attempt, and reports the patch
// id that Keep returns. A runner shows the stored text only if its id is the one in
// the journal (ADR 0102). A change that cannot be stored never fails an attempt.
package changes

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/patch"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// Store stores changes. It never has an attempt fail: a change that cannot be
// stored is one that readers do not see.
type Store struct {
	// Bus has the store of objects.
	Bus *bus.Bus
	// Log is told of each change that is not stored.
	Log *slog.Logger
	// Secrets are those of the worker; nil until it runs. A file that seems to
	// have one is stored by its name and counts alone.
	Secrets atomic.Pointer[redact.Redactor]
}

// Keep stores the change of an attempt, so that readers see it without a
// worker, and returns its id; empty if there is none. An attempt goes on
// without it: readers are then told that it is not there.
func (s *Store) Keep(ctx context.Context, j *jobs.Job, base, head git.OID) (id string) {
	w := &patch.Writer{}
	if r := s.Secrets.Load(); r != nil {
		w.Secret = func(text string) bool { return r.Text(text) != text }
	}
	id, err := j.Store.Patch(ctx, base, head, w)
	if err != nil {
		s.Log.WarnContext(ctx, "the change of an attempt cannot be printed; readers do not see it", "error", err)
		return ""
	}
	tree, err := j.Store.Tree(ctx, head)
	if err == nil {
		p := w.Patch()
		p.Base, p.Head, p.Tree, p.PatchID = string(base), string(head), string(tree), id
		err = patch.Store(ctx, s.Bus.Objects, j.Command.To, j.Command.Attempt, p)
	}
	if err != nil {
		s.Log.WarnContext(ctx, "the change of an attempt cannot be stored; readers do not see it", "error", err)
	}
	return id
}
