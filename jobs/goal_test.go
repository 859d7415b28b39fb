package jobs_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

func TestAGoalSaysHowItsAgentRuns(t *testing.T) {
	t.Parallel()
	const allowed = "models: {default: plain}\nworker_tools: [Read, Bash, 'Edit(src/*)']\n"
	all := []string{"Read", "Bash", "Edit(src/*)"}
	for name, tt := range map[string]struct {
		role    agent.Role
		goal    *forge.GoalOptions
		model   string
		tools   []string
		failure string
	}{
		"nothing":       {agent.RoleExecute, nil, "plain", all, ""},
		"nothing of it": {agent.RoleExecute, &forge.GoalOptions{MaxIterations: 3}, "plain", all, ""},
		"another role":  {agent.RoleImplement, &forge.GoalOptions{Model: "clever", Tools: []string{"Read"}}, "plain", all, ""},
		"both":          {agent.RoleExecute, &forge.GoalOptions{Model: "clever[1m]", Tools: []string{"Read"}}, "clever[1m]", []string{"Read"}, ""},
		"not allowed":   {agent.RoleExecute, &forge.GoalOptions{Tools: []string{"WebFetch", "Read", "Read"}}, "plain", []string{"Read"}, ""},
		"for less":      {agent.RoleExecute, &forge.GoalOptions{Tools: []string{"Bash(go test:*)"}}, "plain", []string{"Bash(go test:*)"}, ""},
		"for no more":   {agent.RoleExecute, &forge.GoalOptions{Tools: []string{"Edit", "Edit(/etc/*)"}}, "plain", []string{"Edit(src/*)"}, ""},
		"none is left": {
			agent.RoleExecute, &forge.GoalOptions{Tools: []string{"WebFetch"}}, "", nil,
			"goal.tools (allowed_tools in a file) has none of the tools that worker_tools in pfl-forge.yaml allows: Read, Bash, Edit(src/*)",
		},
	} {
		call, res := run(t, allowed, forge.Command{BudgetUSD: 5, Intent: forge.Intent{Settings: forge.Settings{Goal: tt.goal}}}, agent.Call{Role: tt.role})
		if f := res.Failure(); tt.failure != "" {
			if f == nil || f.Reason != forge.FailConfig || !strings.Contains(f.Message, tt.failure) {
				t.Errorf("%s: got %+v", name, f)
			}
			continue
		}
		if diff := cmp.Diff(tt.tools, call.Tools); diff != "" || call.Model != tt.model || res.Failure() != nil {
			t.Errorf("%s: model %s, %+v\n%s", name, call.Model, res.Failure(), diff)
		}
	}
}

// Who stands in for an agent works with a model of its own.
func TestModelOfAGoalIsOfItsAgent(t *testing.T) {
	t.Parallel()
	for avoid, want := range map[string]string{"": "clever", "claude": ""} {
		cmd := forge.Command{
			BudgetUSD: 5,
			Intent:    forge.Intent{Settings: forge.Settings{Goal: &forge.GoalOptions{Model: "clever"}}},
			Attempt:   forge.Attempt{Step: forge.StepExecute}, LimitedAgents: []string{avoid},
		}
		j := choose(t, choices, "", cmd)
		a, err := j.Agent()
		if err != nil {
			t.Fatal(err)
		}
		_, err = j.Run(context.Background(), agent.Call{Role: agent.RoleExecute})
		if got := a.(*named).call.Model; got != want || err != nil {
			t.Errorf("%s works with %q, %v", a.Name(), got, err)
		}
	}
}
