package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// TestQueueGoesOn: what a runner tells of a merge queue, by a machine that goes on
// from request to request, is what the whole journal says, also after snapshots.
func TestQueueGoesOn(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	ready := make(chan struct{})
	group.Go(func() error {
		return runner.Run(ctx, runner.Config{
			Bus: b, Log: slog.New(slog.DiscardHandler), Serve: true, SnapshotEvery: 5, Ready: func() { close(ready) },
		})
	})
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	wait.For(t, ready)
	release := make(chan struct{})
	startWorkers(t, b, func(c forge.Command) forge.Result {
		if c.Attempt.Step == forge.StepMerge {
			<-release
		}
		return succeed(c)
	})
	told := func() (q document.Queue) {
		data, err := b.Submissions.Page(wait.Context(t), project, "gateway", "queue", document.QueueRequest{})
		if err != nil || json.Unmarshal(data, &q) != nil {
			return document.Queue{Changes: []document.QueuedChange{{}}}
		}
		return q
	}
	agree := func(n int) {
		t.Helper()
		wait.Until(t, fmt.Sprintf("both tell of %d changes", n), func() bool {
			whole, err := runner.Queue(wait.Context(t), b, project)
			if err != nil {
				t.Fatal(err)
			}
			now := told()
			for _, list := range [][]document.QueuedChange{whole.Changes, now.Changes} {
				for i := range list {
					list[i].Seconds = nil
				}
			}
			return len(now.Changes) == n && reflect.DeepEqual(whole.Changes, now.Changes)
		})
	}
	agree(0)
	for i := range 5 {
		asked(t, b, submission(forge.IntentID(fmt.Sprintf("intent-%d", i))))
		agree(i + 1)
	}
	close(release)
	agree(0)
}
