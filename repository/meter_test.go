package repository_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/repository"
	"github.com/pfl-forge/pfl-forge/repository/repotest"
)

// mortal is an agent whose service is killed as often as it says, after two requests
// to its model. It needs one more to be done.
type mortal struct{ kills int }

func (m *mortal) Name() string { return "claude" }

func (m *mortal) Run(_ context.Context, _ agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	for n := range int64(2) {
		sink(agent.Event{Kind: agent.EventUsage, Usage: forge.Usage{InputTokens: 10 * (n + 1)}})
	}
	if m.kills--; m.kills >= 0 {
		runtime.Goexit() // nothing after this happens, as when the process is gone
	}
	return agent.Outcome{Usage: forge.Usage{InputTokens: 30, Calls: 1}}, nil
}

// TestKilledLivesCount: what an attempt used in services that were killed is in the
// result of the one that ends it, once.
func TestKilledLivesCount(t *testing.T) {
	m := &mortal{kills: 2}
	set := repotest.Local(t, gittest.New(t, map[string]string{"pfl-forge.yaml": "agent: claude\n"}).Dir, m)
	state := t.TempDir()
	live := func(number, claim int) (res forge.Result) {
		cmd := forge.Command{
			To:      forge.Key{Project: repotest.Project, Intent: "fix"},
			Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: number, Claim: claim},
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			res = set.Do(context.Background(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *repository.Job) error {
				_, err := j.Run(ctx, agent.Call{Role: agent.RoleAnalyze, StateDir: state})
				return err
			})
		}()
		<-done
		return res
	}
	live(1, 1)
	live(1, 2)
	if got := live(1, 2).Usage.InputTokens; got != 20+20+30 {
		t.Errorf("the attempt used %d tokens, want those of its three lives, 70", got)
	}
	if got := live(2, 1).Usage.InputTokens; got != 30 {
		t.Errorf("the next attempt used %d tokens, want its own 30", got)
	}
}
