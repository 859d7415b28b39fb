package jobs_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/recipe"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// named is a back end of that name, which may lack its program.
type named struct {
	scribe

	name string
	gone error
}

func (n *named) Name() string { return n.name }

func (n *named) Found() error { return n.gone }

const choices = `
agent: claude
roles: {review: gemini}
fallback: [codex, ours, careful, gemini]
agents:
  ours: {command: [ours]}
  careful: {command: [careful], read_only: true}
models: {default: sonnet}
`

func TestWhoStandsIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		step  forge.Step
		in    forge.Intent
		avoid []string
		gone  string
		want  string
	}{
		{step: forge.StepImplement, want: "claude"},
		{step: forge.StepReview, want: "gemini"},
		{step: forge.StepAudit, want: "claude"},
		{step: forge.StepAudit, in: forge.Intent{Settings: forge.Settings{Recipe: "x"}}, want: "recipe"},
		{step: forge.StepReflect, in: forge.Intent{Settings: forge.Settings{Recipe: "x"}}, want: "claude"}, // it is about more than that intent
		{step: forge.StepReflect, in: forge.Intent{Settings: forge.Settings{Agent: "recipe"}}, want: "claude"},
		{step: forge.StepReflect, in: forge.Intent{Settings: forge.Settings{Agent: "codex"}}, want: "codex"},
		{step: forge.StepReview, in: forge.Intent{Settings: forge.Settings{Agent: "ours"}}, want: "ours"},
		{step: forge.StepImplement, avoid: []string{"codex"}, want: "claude"},
		{step: forge.StepImplement, avoid: []string{"claude"}, want: "codex"},
		{step: forge.StepImplement, avoid: []string{"claude"}, gone: "codex", want: "ours"},
		{step: forge.StepImplement, avoid: []string{"claude", "codex"}, want: "ours"},
		{step: forge.StepExecute, avoid: []string{"claude", "codex"}, want: "ours"},
		{step: forge.StepAnalyze, avoid: []string{"claude", "codex"}, want: "careful"}, // nothing keeps ours from writing
		{step: forge.StepReview, avoid: []string{"gemini"}, want: "codex"},
		{step: forge.StepImplement, avoid: []string{"claude", "codex", "ours", "careful", "gemini"}, want: "claude"},
		{step: forge.StepImplement, in: forge.Intent{Settings: forge.Settings{Recipe: "x"}}, avoid: []string{"recipe"}, want: "recipe"},
	} {
		j := choose(t, choices, tt.gone, forge.Command{BudgetUSD: 5, Intent: tt.in, Attempt: forge.Attempt{Step: tt.step}, LimitedAgents: tt.avoid})
		if a, err := j.Agent(); err != nil || a.Name() != tt.want {
			t.Errorf("%s %+v avoiding %v: got %v, %v; want %s", tt.step, tt.in, tt.avoid, a, err, tt.want)
		}
	}
	j := choose(t, choices, "", forge.Command{BudgetUSD: 5, Intent: forge.Intent{Settings: forge.Settings{Agent: "nobody"}}})
	if _, err := j.Agent(); err == nil || err.Error() != `config: there is no agent "nobody" here; known are recipe, claude, codex, gemini, careful, ours` {
		t.Errorf("got %v", err)
	}
	if got := j.Config.Rules().Fallbacks; got != 4 {
		t.Errorf("there are %d fallbacks", got)
	}
}

// TestWhoReviewsSecond has the command for a second review. Whoever made the first never makes it.
func TestWhoReviewsSecond(t *testing.T) {
	t.Parallel()
	const (
		project = "agent: claude\nmodels: {default: sonnet}\nfallback: [codex, gemini]\n"
		codex   = "review: {second: {agent: codex, model: o3}}"
	)
	o3, sonnet := forge.Reviewer{Agent: "codex", Model: "o3"}, forge.Reviewer{Agent: "claude", Model: "sonnet"}
	for _, tt := range []struct {
		name, settings string
		second, first  forge.Reviewer
		intent, avoid  string
		want           string // empty: nobody
	}{
		{"as the project says", project + "review: {second: {agent: gemini}}", o3, sonnet, "", "", "gemini"},
		{"turned off since", project, o3, sonnet, "", "", "codex"},
		{"at its limit nobody stands in", project + codex, o3, sonnet, "", "codex", "codex"},
		{"of an intent that names another one", project + codex, o3, forge.Reviewer{Agent: "gemini"}, "gemini", "", "codex"},
		{"who made the first", project + codex, o3, o3, "codex", "", "claude"},
		{"another model of the same", project + "review: {second: {model: opus}}", o3, sonnet, "", "", "claude"},
		{"nobody else", project, sonnet, sonnet, "", "", ""},
		{"no first that reviews", "agent: recipe\n" + codex, o3, o3, "codex", "", ""},
	} {
		j := choose(t, tt.settings+"\n", "", forge.Command{
			BudgetUSD: 5, Attempt: forge.Attempt{Step: forge.StepReview}, Intent: forge.Intent{Settings: forge.Settings{Agent: tt.intent}},
			Input: &forge.ReviewInput{Second: &tt.second, First: tt.first}, LimitedAgents: []string{tt.avoid},
		})
		if a, err := j.Agent(); (err != nil) != (tt.want == "") || err == nil && a.Name() != tt.want {
			t.Errorf("%s: %v, %v; want %s", tt.name, a, err, tt.want)
		}
	}
}

// choose returns a job in a project with these settings; the program of the back end
// gone is not there.
func choose(t *testing.T, settings, gone string, cmd forge.Command) *jobs.Job {
	t.Helper()
	var agents []agent.Agent
	for _, name := range []string{"claude", "codex", "gemini"} {
		n := &named{name: name}
		if name == gone {
			n.gone = agent.Fail(forge.FailMissingCLI, "gone")
		}
		agents = append(agents, n)
	}
	state := t.TempDir()
	owner := process.NewOwner(state)
	set, err := jobs.OpenSet(t.Context(), jobs.Host{
		StateDir: state, Owner: owner, Sandbox: demand.Unconfined, Agents: append([]agent.Agent{recipe.New(owner)}, agents...), Log: slog.New(slog.DiscardHandler),
		Own: func(name string, c config.AgentConfig) agent.Agent {
			if c.Command[0] != name {
				t.Errorf("%s has the command %q", name, c.Command)
			}
			return &named{name: name}
		},
	}, []jobs.Source{{Project: repotest.Project, Path: gittest.New(t, map[string]string{"pfl-forge.yaml": settings}).Dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	cmd.To = forge.Key{Project: repotest.Project, Intent: "fix"}
	var job *jobs.Job
	set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(_ context.Context, j *jobs.Job) error {
		job = j
		return nil
	})
	return job
}
