package implementer

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	others "github.com/pfl-forge/pfl-forge/service/elsewhere"
)

// TestEndedWhileUnwell: how an attempt ends while its replica can do no work, such
// as for want of space, is not kept as its end: the next delivery of the command
// makes the attempt, and does not repeat a failure that was not the task's.
func TestEndedWhileUnwell(t *testing.T) {
	t.Parallel()
	room := filepath.Join(t.TempDir(), "room")
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings + "  gated: {run: 'test -e " + room + " && echo x > new.txt'}\n", "a.txt": "1\n"})
	w := worldOn(t, r, repotest.Unconfined(t, r.Dir), bustest.Start(t))
	c := recipe(1, "gated")
	full, _ := others.Listen(t.Context(), func(context.Context) error { return syscall.ENOSPC })
	if got := w.imp.implement(full, c, silent); got.Failure() == nil {
		t.Fatalf("without room it did its job: %+v", got)
	}
	if err := os.WriteFile(room, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	well, _ := others.Listen(t.Context(), func(context.Context) error { return nil })
	if got := w.imp.implement(well, c, silent); got.Failure() != nil {
		t.Errorf("the next delivery repeats what the disk did: %+v", got.Failure())
	}
}
