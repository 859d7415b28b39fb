package implementer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// A change merged, its replica died before it told, and the task was given up: that it
// merged is told before the refs go that say so.
func TestCleanTellsWhatMerged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results := w.results()
	merged := w.diedAfterMoving()
	w.want() // the project has heard of it
	w.intent(forge.StatusCancelled, failed)
	w.clean(requests.CleanRequest{})
	r := wait.For(t, results)
	if out := forge.As[*forge.MergeResult](r.Output); out == nil || out.Commit != string(merged) {
		t.Errorf("got %+v", r)
	}
	if left := w.refs(""); len(left) > 0 {
		t.Errorf("kept %q", left)
	}
}

// An answer tells of so many intents, and where to go on.
func TestCleanInParts(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	w, _ := sharing(t)
	tip := w.repo.Head("main")
	for n := range requests.MaxClean + 3 {
		id := forge.IntentID(fmt.Sprintf("i%03d", n))
		w.repo.Git("update-ref", "refs/forge/"+string(id)+"/"+string(id)+"-001/1/"+tip.Short(), string(tip))
		w.became(id, forge.StatusDone, longAgo)
	}
	first := w.clean(requests.CleanRequest{DryRun: true})
	if len(first.Intents) != requests.MaxClean || first.Next != "i099" || first.Intents[0].ID != "i000" {
		t.Errorf("got %d, next %q", len(first.Intents), first.Next)
	}
	second := w.clean(requests.CleanRequest{After: first.Next})
	if len(second.Intents) != 3 || second.Next != "" || !second.Intents[2].Removed {
		t.Errorf("got %+v", second)
	}
	if rest := w.clean(requests.CleanRequest{}); len(rest.Intents) != requests.MaxClean || rest.Next != "" || len(w.left()) > 0 {
		t.Errorf("got %d, next %q, left %q", len(rest.Intents), rest.Next, w.left())
	}
	if exists(filepath.Join(w.repo.Dir, "refs", "forge", "i000")) {
		t.Error("folders of refs stay")
	}
}

// Where the origin deletes no refs, an intent is kept with what the origin
// says, and so are its sessions and transcripts, until it does.
func TestCleanWhereNothingIsDeleted(t *testing.T) {
	t.Parallel()
	w, _ := sharing(t)
	w.leaves("fix")
	w.became("fix", forge.StatusDone, longAgo)
	hook := filepath.Join(w.repo.Dir, "hooks", "update")
	refuse := "#!/bin/sh\ncase $3 in *[!0]*) ;; *) echo >&2 deletion is prohibited; exit 1 ;; esac\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o700), os.WriteFile(hook, []byte(refuse), 0o700)); err != nil {
		t.Fatal(err)
	}
	got := w.clean(requests.CleanRequest{})
	if len(got.Intents) != 1 || got.Intents[0].Removed || len(got.Kept) != 1 || got.Kept[0].ID != "fix" ||
		!strings.Contains(got.Kept[0].Reason, "is kept: commits of it stay at the origin: ") || !strings.Contains(got.Kept[0].Reason, "prohibited") {
		t.Errorf("got %+v", got)
	}
	stored, err := w.bus.Objects.List(t.Context(), objects.Name{Project: repotest.Project, Intent: "fix"})
	if err != nil || len(stored) != 3 || len(w.refs("fix")) == 0 { // the session, the transcript, and the change
		t.Errorf("of what is kept are left %v, %v, %q", stored, err, w.refs(""))
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	if got := w.clean(requests.CleanRequest{}); len(got.Kept) > 0 || len(w.left()) > 0 {
		t.Errorf("got %+v, left %q", got, w.left())
	}
}
