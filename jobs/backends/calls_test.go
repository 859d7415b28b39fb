package backends_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/remote/remotetest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
)

const realKey = "real-key-0123456789"

// TestCalls has each back end make one call as a worker does: with the machine's
// sandbox, and through the gateway, which alone has the key; and again where commands run in
// a container that shares neither files nor network with it.
func TestCalls(t *testing.T) {
	for _, tt := range []struct {
		name, key, base, path, model string
		shell                        agenttest.Step
	}{
		{"codex", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1", "gpt-5-codex", agenttest.Use("exec_command", map[string]string{"cmd": spy})},
		{"gemini", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "", "gemini-2.5-pro", agenttest.Use("run_shell_command", map[string]string{"command": spy})},
		{
			"opencode", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "", "claude-sonnet-4-5",
			agenttest.Use("bash", map[string]string{"command": spy, "description": "x"}),
		},
	} {
		test := func(t *testing.T, executor process.Executor, policy string) {
			t.Helper()
			model := agenttest.NewServer(t)
			t.Setenv(tt.key, realKey)
			t.Setenv(tt.base, model.Script("main", agenttest.InOrder(
				tt.shell, said(map[string]string{"summary": "done"}), tt.shell,
				said(map[string]any{"requirements": []any{}, "verdict": "approved", "issues": []string{}}),
			))+tt.path)
			t.Setenv("PATH", filepath.Dir(agenttest.CLI(t, tt.name))+":"+os.Getenv("PATH"))

			r := gittest.New(t, map[string]string{
				"a":              "a\n",
				"pfl-forge.yaml": "agent: " + tt.name + "\nagents: {" + tt.name + ": {models: {default: " + tt.model + "}}}\n" + policy,
			})
			set, err := jobs.OpenSet(t.Context(), backends.Host(testdir.New(t), executor, demand.Bounds{}, backends.Environment, slog.New(slog.DiscardHandler)),
				[]jobs.Source{{Project: "shop", Path: r.Dir}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := set.Close(); err != nil {
					t.Error(err)
				}
			}()
			cmd := forge.Command{BudgetUSD: 5, To: forge.Key{Project: "shop", Intent: "fix"}, Attempt: forge.Attempt{Step: forge.StepImplement, Number: 1}}
			work := gittest.New(t, map[string]string{"b": "b\n"}).Dir
			call := func(role agent.Role, want string) {
				t.Helper()
				res := set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
					out, err := j.Run(ctx, agent.Call{Role: role, Dir: work, StateDir: testdir.New(t), Prompt: "p", System: "s"})
					if string(out.Answer) != want {
						t.Errorf("got %s, %v", out.Answer, err)
					}
					return err
				})
				if res.Failure() != nil || res.Agent != tt.name || res.Usage.InputTokens != 200 || res.Usage.CostUSD <= 0 {
					t.Errorf("got %+v, %+v", res, res.Failure())
				}
			}
			planted := filepath.Join(work, "planted")
			call(agent.RoleImplement, `{"summary":"done"}`)
			if err := os.Remove(planted); err != nil {
				t.Error(err)
			}
			call(agent.RoleReview, `{"issues":[],"requirements":[],"verdict":"approved"}`)
			if _, err := os.Stat(planted); err == nil {
				t.Error("a review changed the checkout")
			}
			all := model.Requests("main")
			if len(all) != 4 || !strings.Contains(all[0].Header.Get("Authorization")+all[0].Header.Get("X-Goog-Api-Key")+all[0].Header.Get("X-Api-Key"), realKey) {
				t.Fatalf("the model was asked %d times, or not with the key", len(all))
			}
			if seen := all[1].LastResult; !strings.Contains(seen, "HOME=") || strings.Contains(seen, realKey) {
				t.Errorf("the agent's commands see\n%s", seen)
			}
		}
		t.Run(tt.name, func(t *testing.T) { test(t, nil, "") })
		t.Run(tt.name+" in a container", func(t *testing.T) {
			remotetest.Need(t)
			// All directories of the test are below one, which is the service's
			// state to the container.
			test(t, remotetest.Container{T: t, State: filepath.Dir(testdir.New(t))}, "policy: {network: model}\n")
		})
	}
}

// spy shows what a command of an agent could find.
const spy = "touch planted; env; cat /proc/*/environ | tr '\\0' '\\n'"

func said(v any) agenttest.Step {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return agenttest.Say(string(data))
}
