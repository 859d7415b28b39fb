package service_test

import (
	"context"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/service"
)

// A handler that looks for facts is asked also when nobody waits for them. What it
// finds is reported; that it found nothing is not.
func TestRegardless(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	w := worker(t, b, func(_ context.Context, cmd forge.Command, _ service.Progress) forge.Result {
		if cmd.Attempt.Number == 1 {
			return forge.Result{Output: &forge.Failure{Reason: forge.FailKilled, Message: "nothing is found"}}
		}
		return found()
	})
	w.Handlers[0].Regardless = true
	workerRun(t, w)
	r.want()
	r.dispatch(forge.Effects{Commands: []forge.Command{analyze(1)}})
	r.dispatch(forge.Effects{Commands: []forge.Command{analyze(2)}})
	if got := r.result(); got.Attempt != analyze(2).Attempt || forge.As[*forge.Analysis](got.Output) == nil {
		t.Errorf("got %+v", got)
	}
	r.none()
}
