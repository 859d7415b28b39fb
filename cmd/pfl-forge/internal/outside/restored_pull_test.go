package outside

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/backup"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/trailers"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestSquashedAfterTheBackup: a person squashes a pull request by the forge's own
// words, which have none of our trailers, after a backup in which it was open. Restored
// into another server, the comparison with a clone names the intent with the commit on
// main: a person cancels it before any worker is up, and it is not made twice.
func TestSquashedAfterTheBackup(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	w := newPullWorld(t, "by: people, method: squash")
	issue := w.open()
	stop := w.gateway()
	opened := w.pull("is opened", func(p *pull) bool { return p.State == "open" })
	folder := filepath.Join(t.TempDir(), "backup")
	done := func(backup.Stream) {}
	if _, err := w.nats.Connect(t).Backups.Write(wait.Context(t), folder, done); err != nil {
		t.Fatal(err)
	}
	w.check(opened.Head.SHA, "success")
	w.review(&opened, "APPROVED", "Good.")
	wait.Until(t, "the statuses are there", func() bool {
		var got struct{ Statuses []struct{ Status string } }
		w.as("root1", http.MethodGet, "/repos/"+w.repo+"/commits/"+opened.Head.SHA+"/status?limit=50", nil, &got)
		return len(got.Statuses) >= 3
	})
	w.as("ada", http.MethodPost, fmt.Sprintf("/repos/%s/pulls/%d/merge", w.repo, opened.Number), object{"do": "squash"}, nil)
	merged := w.pull("is merged", func(p *pull) bool { return p.Merged })
	stop()
	w.gateway() // whose first sweep finds it
	w.landed(issue, &opened, merged.MergeCommit, "noted")

	clone := filepath.Join(t.TempDir(), "web")
	w.git("", "clone", "-q", w.origin, clone)
	if message := w.git(clone, "log", "-1", "--format=%B"); len(trailers.Read(message)) > 0 {
		t.Fatalf("the forge has our trailers of itself: %q", message)
	}
	to, err := bus.Connect(wait.Context(t), bus.Config{URL: bustest.StartServer(t).URL(), Name: t.Name(), Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := to.Backups.Restore(wait.Context(t), folder, backup.Options{Done: done}); err != nil {
		t.Fatal(err)
	}
	repo, err := local.OpenRepository(wait.Context(t), clone)
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	ahead, _, err := repo.Compare(wait.Context(t), to, "shop")
	if err != nil {
		t.Fatal(err)
	}
	id := w.intent().Key.Intent
	want := []local.Ahead{{Intent: id, Merged: local.Commits{{Task: forge.TaskID(id + "-001"), Commit: merged.MergeCommit}}}}
	if diff := cmp.Diff(want, ahead); diff != "" {
		t.Error(diff)
	}
	// What came first is not forgotten: by the journals that know of it nothing is ahead.
	if ahead, _, err := repo.Compare(wait.Context(t), w.nats.Connect(t), "shop"); err != nil || len(ahead) > 0 {
		t.Errorf("by the journals themselves: %+v, %v", ahead, err)
	}
}
