package backends_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
	"github.com/pfl-forge/pfl-forge/service"
)

// TestBadCredentials gives a running service a Secret that it cannot use: it is not ready,
// commands for agents wait, others do not, and a call that has begun fails as one that can be
// made again. Everything names the file, and is over when the Secret is mended.
func TestBadCredentials(t *testing.T) {
	dir := t.TempDir()
	testdir.Secret(t, dir, map[string]string{"ANTHROPIC_API_KEY": "good-key", "ANTROPIC_API_KEY": "misspelt-key", "FORGE_AGENT_OURS_KEY": "own-key"})
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": "agent: ours\nagents: {ours: {command: [sh]}}\n"})
	var log bytes.Buffer
	env := &service.Env{Log: slog.New(slog.NewTextHandler(&log, nil)), Health: &service.Health{}, Config: &service.Config{
		StateDir: testdir.New(t), Projects: []service.Project{{ID: "shop", URL: r.Origin()}}, CredentialsDir: dir,
	}}
	set, err := backends.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	if said := log.String(); strings.Count(said, "no agent reads") != 1 || !strings.Contains(said, "file=ANTROPIC_API_KEY") || strings.Contains(said, "-key") {
		t.Errorf("it logs %s", said)
	}
	command := func(step forge.Step, recipe string) *forge.Command {
		return &forge.Command{
			BudgetUSD: 5,
			To:        forge.Key{Project: "shop", Intent: "fix"}, Attempt: forge.Attempt{Step: step, Number: 1, Task: "fix-001"},
			Intent: forge.Intent{Settings: forge.Settings{Recipe: recipe}},
		}
	}
	want := "--credentials-dir (FORGE_CREDENTIALS_DIR): the credentials cannot be read: " + dir + "/FORGE_AGENT_OURS_KEY"
	check := func(bad bool) {
		t.Helper()
		for _, err := range []error{env.Hold(command(forge.StepImplement, "")), env.Health.Ready(t.Context())} {
			if (err != nil) != bad || bad && !strings.Contains(err.Error(), want) {
				t.Errorf("bad: %t, and %v", bad, err)
			}
		}
		if err := env.Hold(command(forge.StepMerge, "")); err != nil {
			t.Errorf("a merge waits: %v", err)
		}
		if err := env.Hold(command(forge.StepImplement, "format")); err != nil {
			t.Errorf("a recipe waits: %v", err)
		}
		res := set.Do(t.Context(), command(forge.StepImplement, ""), func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
			_, err := j.Run(ctx, agent.Call{Role: agent.RoleImplement, StateDir: testdir.New(t), Prompt: "exit 7"})
			return err
		})
		reason := forge.FailCrashed // the program, which ran
		if bad {
			reason = forge.FailOverloaded
		}
		if f := res.Failure(); f == nil || f.Reason != reason || bad && !strings.Contains(f.Message, want) {
			t.Errorf("bad: %t, and the call ends with %+v", bad, f)
		}
	}
	check(false)
	testdir.Secret(t, dir, map[string]string{"ANTHROPIC_API_KEY": "good-key", "FORGE_AGENT_OURS_KEY": "two\nlines"})
	check(true)
	testdir.Secret(t, dir, map[string]string{"FORGE_AGENT_OURS_KEY": "better-key"})
	check(false)
}
