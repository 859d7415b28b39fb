package jobs_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// starter is an agent that says how it begins.
type starter struct{ begins []agent.Event }

func (*starter) Name() string { return "claude" }

func (s *starter) Run(_ context.Context, _ agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	for _, e := range s.begins {
		e.Kind = agent.EventStarted
		sink(e)
	}
	return agent.Outcome{}, nil
}

// An agent of one's own need not tell its model.
func TestHowACallBegan(t *testing.T) {
	set := repotest.Local(t, gittest.New(t, map[string]string{"a": "a\n"}).Dir, &starter{[]agent.Event{
		{Model: "m1", Session: "s"}, {Model: "m1"}, {Session: "s"}, {},
	}})
	cmd := forge.Command{BudgetUSD: 5, To: forge.Key{Project: repotest.Project, Intent: "fix"}}
	var got []string
	tell := func(p forge.Progress) { got = append(got, p.Text) }
	set.Do(t.Context(), &cmd, tell, func(ctx context.Context, j *jobs.Job) error {
		_, err := j.Run(ctx, agent.Call{Role: agent.RoleAnalyze})
		return err
	})
	want := []string{"runs m1, session s", "runs m1", "began, session s", "began"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
