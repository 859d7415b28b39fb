package e2e

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// killedRun begins a run, kills it after a random while, and reports whether it
// had to: a run may end before.
func (r *repo) killedRun(rng *rand.Rand, least, most time.Duration) bool {
	r.t.Helper()
	cmd := r.command(context.Background(), "run")
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return false
	case <-wait.Moment(rng, least, most):
		_ = cmd.Process.Kill()
		<-ended
		return true
	}
}

// TestKilledRuns kills run -9 at random moments, and then lets one run
// be: every intent is done, each change is on main once, and nothing is left.
func TestKilledRuns(t *testing.T) {
	t.Parallel()
	kills := testsize.Of(5, 50)
	r := newRepo(t, appending)
	lines := appendDrafts(r, testsize.Of(3, 20))
	rng := rand.New(rand.NewPCG(1, 2))
	worked := 0
	for range kills {
		if r.killedRun(rng, 20*time.Millisecond, 820*time.Millisecond) {
			worked++
		}
	}
	if worked < kills/4 {
		t.Logf("only %d of %d runs were killed at work: this machine is too fast for the test's pauses", worked, kills)
	}
	if out := r.must(0, "run"); out.stderr == "" && worked == 0 {
		t.Error("no run was killed")
	}
	checkAppended(t, r, r.read("log.txt"), lines)
	checkProven(t, r.dir, machineKeys(), len(lines)-1)
	r.tidy()
}
