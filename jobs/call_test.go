package jobs_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// scribe is an agent that keeps its last call.
type scribe struct{ call agent.Call }

func (s *scribe) Name() string { return "claude" }

func (s *scribe) Run(_ context.Context, c agent.Call, _ func(agent.Event)) (agent.Outcome, error) {
	s.call = c
	if _, err := os.Stat(c.ScratchDir); err != nil {
		return agent.Outcome{}, agent.Fail(forge.FailCrashed, "%v", err)
	}
	return agent.Outcome{Model: "m1", Usage: forge.Usage{Calls: 1}}, nil
}

const models = `
models: {triage_deep: deep, default: plain, complex: clever}
triage_tools: [Read]
worker_tools: [Read, Write]
calls: {effort: {analyze: high, implement: medium, complexity: {high: xhigh}}, max_turns: 40}
timeouts: {analyze: 1m, implement: 2m, review: 3m, idle: 30s}
budget: {intent_usd: 5}
`

// run makes a call on a repository with that configuration.
func run(t *testing.T, settings string, cmd forge.Command, call agent.Call) (agent.Call, forge.Result) {
	t.Helper()
	s := &scribe{}
	set := repotest.Local(t, gittest.New(t, map[string]string{"pfl-forge.yaml": settings}).Dir, s)
	cmd.To = forge.Key{Project: repotest.Project, Intent: "fix"}
	res := set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
		_, err := j.Run(ctx, call)
		return err
	})
	return s.call, res
}

func TestTheProjectSaysHowAgentsRun(t *testing.T) {
	t.Parallel()
	complicated := forge.Command{BudgetUSD: 4, Task: forge.Task{Complexity: forge.ComplexityHigh}, Intent: forge.Intent{Settings: forge.Settings{BudgetUSD: 7}}}
	small := forge.Command{BudgetUSD: 5, Task: forge.Task{Complexity: forge.ComplexityLow}}
	for _, tt := range []struct {
		role     agent.Role
		cmd      forge.Command
		model    string
		tools    []string
		readOnly bool
		wall     time.Duration
		budget   float64
		effort   config.Level
	}{
		{agent.RoleAnalyze, forge.Command{BudgetUSD: 5}, "deep", []string{"Read"}, true, time.Minute, 5, config.LevelHigh},
		{agent.RoleImplement, forge.Command{BudgetUSD: 5}, "plain", []string{"Read", "Write"}, false, 2 * time.Minute, 5, config.LevelMedium},
		{agent.RoleImplement, small, "plain", []string{"Read", "Write"}, false, 2 * time.Minute, 5, config.LevelLow},
		{agent.RoleImplement, complicated, "clever", []string{"Read", "Write"}, false, 2 * time.Minute, 4, config.LevelXHigh},
		{agent.RoleReview, complicated, "plain", []string{"Read"}, true, 3 * time.Minute, 4, config.LevelProgram},
		{agent.RoleReflect, complicated, "plain", []string{"Read"}, true, 3 * time.Minute, 4, config.LevelLow},
		{agent.RoleSummarize, small, "plain", nil, true, 3 * time.Minute, 5, config.LevelLow},
	} {
		call, res := run(t, models, tt.cmd, agent.Call{Role: tt.role, Limits: agent.Limits{MaxTurns: 2}})
		want := agent.Limits{Wall: tt.wall, Idle: 30 * time.Second, BudgetUSD: tt.budget, MaxTurns: 42}
		if call.Effort != tt.effort {
			t.Errorf("%s of a task %q: effort %q, want %q", tt.role, tt.cmd.Task.Complexity, call.Effort, tt.effort)
		}
		if call.Model != tt.model || !slices.Equal(call.Tools, tt.tools) || call.ReadOnly != tt.readOnly || call.Limits != want {
			t.Errorf("%s: got %+v", tt.role, call)
		}
		in := forge.ExecutorNone
		if call.Sandbox != nil {
			in = forge.ExecutorNamespaces
		}
		if diff := cmp.Diff(forge.Result{Agent: "claude", Model: "m1", Usage: forge.Usage{Calls: 1}, Executor: in}, res); diff != "" {
			t.Error(diff)
		}
		if _, err := os.Stat(call.ScratchDir); err == nil {
			t.Error("scratch files are kept")
		}
	}
}

// TestStrongerCalls has commands that the rules escalated. The back end of the
// step takes model and effort; one that stands in for it, or that the intent
// names, takes the effort alone, since the model is not one of its own.
func TestStrongerCalls(t *testing.T) {
	t.Parallel()
	up := &forge.Stronger{Model: "opus", Effort: "max"}
	named := forge.Command{Stronger: up, Intent: forge.Intent{Settings: forge.Settings{Agent: "claude"}}}
	limited := forge.Command{Stronger: up, LimitedAgents: []string{"codex"}}
	for _, tt := range []struct {
		name, settings string
		cmd            forge.Command
		model          string
		effort         config.Level
	}{
		{"configured", models, forge.Command{Stronger: up}, "opus", config.LevelMax},
		{"only the model", models, forge.Command{Stronger: &forge.Stronger{Model: "opus"}}, "opus", config.LevelMedium},
		{"only the effort", models, forge.Command{Stronger: &forge.Stronger{Effort: "high"}}, "plain", config.LevelHigh},
		{"of a complex task", models, forge.Command{Stronger: up, Task: forge.Task{Complexity: forge.ComplexityHigh}}, "opus", config.LevelMax},
		{"another one of the intent", "agent: codex\n" + models, named, "plain", config.LevelMax},
		{"one that stands in", "agent: codex\nfallback: [claude]\n" + models, limited, "plain", config.LevelMax},
	} {
		tt.cmd.BudgetUSD, tt.cmd.Attempt.Step = 4, forge.StepImplement
		call, res := run(t, tt.settings, tt.cmd, agent.Call{Role: agent.RoleImplement})
		if res.Failure() != nil || call.Model != tt.model || call.Effort != tt.effort || call.Limits.BudgetUSD != 4 {
			t.Errorf("%s: %v, model %s, effort %s, $%.2f", tt.name, res.Failure(), call.Model, call.Effort, call.Limits.BudgetUSD)
		}
	}
}

// TestUnreservedCall has a command without reserved money where the project has
// a budget, of which its runner has not heard: nobody is called, and the runner
// is told. A project without a budget, or a recipe, needs none.
func TestUnreservedCall(t *testing.T) {
	t.Parallel()
	call, res := run(t, models, forge.Command{}, agent.Call{Role: agent.RoleReview})
	if f := res.Failure(); f == nil || f.Reason != forge.FailUnreserved || res.Policy == nil || res.Policy.Budget.IntentUSD != 5 || call.Role != "" {
		t.Errorf("%+v, called %q", res, call.Role)
	}
	review := agent.Call{Role: agent.RoleReview}
	if call, res := run(t, "budget: {intent_usd: 0, day_usd: 0}\n", forge.Command{}, review); res.Failure() != nil || call.Role == "" {
		t.Errorf("without a budget: %+v", res.Failure())
	}
	if _, res := run(t, "agent: claude\n", forge.Command{}, review); res.Policy == nil || res.Policy.Budget.DayUSD != config.DefaultDayUSD {
		t.Errorf("a project that names no budget: %+v", res)
	}
}

func TestWhichAgent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings string
		intent   forge.Intent
		want     string
	}{
		{"", forge.Intent{}, "claude"},
		{"agent: recipe", forge.Intent{}, "recipe"},
		{"agent: recipe", forge.Intent{Settings: forge.Settings{Agent: "claude"}}, "claude"},
		{"agent: recipe", forge.Intent{Settings: forge.Settings{Agent: "claude", Recipe: "x"}}, "claude"},
		{"", forge.Intent{Settings: forge.Settings{Recipe: "x"}}, "recipe"},
	} {
		set := repotest.Local(t, gittest.New(t, map[string]string{"pfl-forge.yaml": tt.settings + "\n"}).Dir, &scribe{})
		cmd := forge.Command{BudgetUSD: 5, To: forge.Key{Project: repotest.Project, Intent: "fix"}, Intent: tt.intent}
		set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(_ context.Context, j *jobs.Job) error {
			a, err := j.Agent()
			if err != nil || a.Name() != tt.want {
				t.Errorf("%q, %+v: got %v, %v", tt.settings, tt.intent, a, err)
			}
			return err
		})
	}
}

func TestRequiredSandbox(t *testing.T) {
	t.Parallel()
	call, res := run(t, "policy: {sandbox: require}\n"+models, forge.Command{BudgetUSD: 5}, agent.Call{Role: agent.RoleReview})
	if err := process.Probe(t.Context(), sandbox.NetworkFull); err != nil {
		if res.Failure() == nil || res.Failure().Reason != forge.FailSandbox {
			t.Errorf("there is no sandbox (%v), and %+v", err, res)
		}
		return
	}
	if res.Failure() != nil || call.Sandbox == nil {
		t.Errorf("there is a sandbox, and %+v, %+v", call.Sandbox, res)
	}
}

// A worker calls no agent whose account is known to refuse calls, and says
// which one it would have been.
func TestHeldCall(t *testing.T) {
	t.Parallel()
	called, res := run(t, models, forge.Command{BudgetUSD: 4, ClosedAgents: []string{"codex", "claude"}}, agent.Call{Role: agent.RoleReview, Prompt: "x"})
	if f := res.Failure(); f == nil || f.Reason != forge.FailHeld || res.Agent != "claude" || called.Prompt != "" {
		t.Errorf("got %+v, and a call with %q", res, called.Prompt)
	}
	called, res = run(t, models, forge.Command{BudgetUSD: 4, ClosedAgents: []string{"codex"}}, agent.Call{Role: agent.RoleReview, Prompt: "x"})
	if res.Failure() != nil || called.Prompt != "x" {
		t.Errorf("got %+v, and a call with %q", res, called.Prompt)
	}
}
