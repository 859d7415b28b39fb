package implementer

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/patch"
	"github.com/pfl-forge/pfl-forge/internal/redact"
)

// stored returns the files of the change that is stored of an attempt.
func (w *world) stored(c *forge.Command, base, head, id string) []document.DiffFile {
	w.t.Helper()
	p, err := patch.Read(w.t.Context(), w.bus.Objects, c.To, c.Attempt, patch.About{Base: base, Head: head, PatchID: id})
	if err != nil {
		w.t.Fatal(err)
	}
	if want := w.repo.Git("rev-parse", head+"^{tree}"); p.Tree != strings.TrimSpace(want) {
		w.t.Errorf("the tree is %s, and not %s", p.Tree, want)
	}
	files, err := p.Files(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

// TestChangeIsStored: of each attempt the whole change is stored, before its
// result, and of a rebase the one that was verified.
func TestChangeIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := recipe(1, "write", "FILE", "new.txt", "TEXT", "one")
	first := w.implemented(c)
	if f := w.stored(&c, first.Base, first.Head, first.PatchID); len(f) != 1 || f[0].Path != "new.txt" || f[0].Status != "added" || f[0].Added != 1 {
		t.Errorf("got %+v", f)
	}
	again := recipe(2, "write", "FILE", "new.txt", "TEXT", "two")
	again.Task.Base, again.Task.Head = first.Base, first.Head
	second := w.implemented(again)
	if f := w.stored(&again, second.Base, second.Head, second.PatchID); len(f) != 1 || f[0].Added != 2 {
		t.Errorf("rework: got %+v", f)
	}
	w.repo.Commit("main moves", map[string]string{"b.txt": "c\n"})
	moved := command(forge.StepRebase, 1)
	moved.Task.Base, moved.Task.Head = second.Base, second.Head
	r := w.imp.rebase(t.Context(), moved, silent)
	rb := forge.As[*forge.Rebase](r.Output)
	if rb == nil || rb.PatchID != second.PatchID {
		t.Fatalf("got %+v", r.Output)
	}
	if f := w.stored(&moved, rb.Base, rb.Head, rb.PatchID); len(f) != 1 || f[0].Added != 2 {
		t.Errorf("rebase: got %+v", f)
	}
	w.repo.Commit("main moves on", map[string]string{"c.txt": "d\n"})
	merged := merge(1, rb)
	if got := w.merges(merged); got.Outcome != forge.MergeDone || got.PatchID != rb.PatchID {
		t.Fatalf("got %+v", got)
	}
	if o, err := w.bus.Objects.Read(t.Context(), objects.PatchName(merged.To, merged.Attempt, rb.PatchID)); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a merge stores a change that readers have already: %+v, %v", o, err)
	}
	idle := recipe(3, "fine")
	idle.Task.Base, idle.Task.Head = second.Base, second.Head
	if im := w.implemented(idle); im.PatchID != "" {
		t.Errorf("an attempt that added nothing has %+v", im)
	}
}

// TestSecretsAreNotStored: of a file that has a secret of the worker, the lines are not stored.
func TestSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	const secret = "p2-hunter-7g9x0q"
	w := newWorld(t)
	w.imp.changes.Secrets.Store(redact.New(secret))
	c := recipe(1, "write", "FILE", "new.txt", "TEXT", "key = "+secret)
	im := w.implemented(c)
	f := w.stored(&c, im.Base, im.Head, im.PatchID)
	if len(f) != 1 || !strings.Contains(f[0].Cut, "secret") || strings.Contains(fmt.Sprint(f), secret) {
		t.Errorf("got %+v", f)
	}
}
