package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
)

// A command was addressed to a replica that is gone for good: another one does it,
// but not while somebody works on it.
func TestCommandOfAReplicaThatIsGone(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	gone, held := analyze(1), analyze(2)
	gone.Replica, held.Replica = "w2", "w3"
	held.To.Intent = "other"
	holding, err := b.Leases.Acquire(wait.Context(t), &work.Job{Command: held}, work.LeaseHolder{Replica: "w3", Life: "1"})
	if err != nil {
		t.Fatal(err)
	}
	r.start(gone)
	r.dispatch(forge.Effects{Commands: []forge.Command{held}})
	took := make(chan forge.Command, 10)
	w := worker(t, b, func(_ context.Context, c forge.Command, _ service.Progress) forge.Result {
		took <- c
		return found()
	})
	w.Handlers[0].Agent, w.Shared, w.Recheck = true, true, 20*time.Millisecond
	workerRun(t, w)
	if c := wait.For(t, took); c.ID() != gone.ID() {
		t.Errorf("it took %s", c.ID())
	}
	if res := r.result(); res.Failure() != nil || res.Attempt != gone.Attempt || res.Replica != w.Replica {
		t.Errorf("got %+v", res)
	}
	if holding.Held() != nil || len(took) > 0 {
		t.Error("it took what another replica works on")
	}
}
