package exec_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/agenttest/conformance"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	forgeexec "github.com/pfl-forge/pfl-forge/agent/exec"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/credentials"
)

func answer(v any) agenttest.Step {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return agenttest.Say(string(data))
}

// TestConformance is of the example that the documentation has.
func TestConformance(t *testing.T) {
	example, err := filepath.Abs("../../docs/examples/agent.mjs")
	if err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, conformance.Backend{
		New: func(t testing.TB, path string, env []string) agent.Agent {
			t.Helper()
			c := config.AgentConfig{Command: []string{"node", example}, ReadOnly: true}
			return forgeexec.New("ours", c, cli.Options{Path: path, Owner: process.NewOwner(t.TempDir()), Env: env})
		},
		Env: func(base string) []string {
			return []string{"ANTHROPIC_BASE_URL=" + base, "ANTHROPIC_API_KEY=test-key"}
		},
		Model: "claude-sonnet-4-5",
		Shell: func(command string) agenttest.Step {
			return agenttest.Use("bash", map[string]string{"command": command})
		},
		Read:    func(path string) agenttest.Step { return agenttest.Use("read_file", map[string]string{"path": path}) },
		Limited: []string{"read_file"},
		Answer:  answer,
		Trap: func(t testing.TB, dir, evil, command string) {
			t.Helper()
			conformance.Write(t, filepath.Join(dir, ".env"), "ANTHROPIC_BASE_URL="+evil+"\n")
			conformance.Write(t, filepath.Join(dir, "node"), "#!/bin/sh\n"+command+"\n")
			conformance.Write(t, filepath.Join(dir, "package.json"), `{"type": "module", "main": "node"}`)
		},
	})
}

// script runs a call of a program that is this shell script.
func script(t *testing.T, text string, change func(*agent.Call, *config.AgentConfig)) (agent.Outcome, error) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat > \"$HOME/prompt\"\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	call := agent.Call{
		Role: agent.RoleReview, Dir: t.TempDir(), ScratchDir: t.TempDir(), StateDir: t.TempDir(), Prompt: "p", ReadOnly: true,
		Schema: agent.ReviewSchema, Session: agent.Session{ID: agent.NewSessionID()}, Model: "m",
	}
	if out, err := exec.Command("git", "-C", call.Dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := config.AgentConfig{Command: []string{program, "-x"}, ReadOnly: true}
	if change != nil {
		change(&call, &c)
	}
	return forgeexec.New("ours", c, cli.Options{}).Run(t.Context(), call, nil)
}

const good = `{"type":"result","answer":{"requirements":[],"verdict":"approved","issues":[]},"model":"m2","usage":{"input_tokens":1,"output_tokens":2,` +
	`"cache_read_tokens":3,"cache_write_tokens":4,"cost_usd":0.5,"turns":6}}`

func TestResult(t *testing.T) {
	out, err := script(t, "echo noise; echo '"+good+"'; echo warning >&2", nil)
	want := forge.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, CostUSD: 0.5, Turns: 6, Calls: 1}
	diff := cmp.Diff(want, out.Usage)
	if diff != "" || err != nil || out.Model != "m2" || string(out.Answer) != `{"issues":[],"requirements":[],"verdict":"approved"}` {
		t.Errorf("%v, answer %s, model %s\n%s", err, out.Answer, out.Model, diff)
	}
}

func TestProgramSeesItsCall(t *testing.T) {
	out, err := script(t, `
		env | grep ^FORGE_ | sed "s|$HOME|HOME|; s|$FORGE_STATE_DIR|STATE|; s|$FORGE_SESSION|ID|" |
			grep -v FORGE_RUN_ID | sort >> "$FORGE_STATE_DIR/seen"
		cat "$FORGE_SYSTEM" "$FORGE_SCHEMA" | head -c 6 >> "$FORGE_STATE_DIR/seen"
		printf '{"type":"result","text":"%s"}\n' "$(cat "$FORGE_STATE_DIR/seen" | tr '\n' ' ' | tr '"' "'")"`,
		func(c *agent.Call, _ *config.AgentConfig) {
			c.Schema, c.System, c.Limits.MaxTurns, c.Limits.BudgetUSD, c.Tools, c.Effort = nil, "who", 3, 1.5, []string{"Read", "Grep"}, config.LevelHigh
		})
	want := "FORGE_BUDGET_USD=1.5000 FORGE_EFFORT=high FORGE_MAX_TURNS=3 FORGE_MODEL=m FORGE_READ_ONLY=1 FORGE_ROLE=review FORGE_SESSION=ID " +
		"FORGE_STATE_DIR=STATE FORGE_SYSTEM=HOME/system.md FORGE_TOOLS=Read,Grep FORGE_UNINSTRUCTED=1 who"
	if diff := cmp.Diff(want, strings.TrimSpace(out.Text)); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestFailures(t *testing.T) {
	until := `"until":"2030-01-01T00:00:00Z"`
	for _, tt := range []struct {
		name, script string
		reason       forge.FailureReason
		message      string
	}{
		{"nothing", "exit 0", forge.FailInvalidOutput, "printed no line"},
		{"status", "echo why >&2; exit 3", forge.FailCrashed, "ended with status 3; why"},
		{"status with a result", "echo '" + good + "'; exit 3", forge.FailCrashed, "ended with status 3"},
		{"wrong answer", `echo '{"type":"result","answer":{"verdict":"no"}}'`, forge.FailInvalidOutput, "verdict is no; must be one of"},
		{"no answer", `echo '{"type":"result","text":"fine"}'`, forge.FailInvalidOutput, "it said: fine"},
		{"quota", `echo '{"type":"result","error":{"reason":"quota","message":"spent",` + until + `}}'`, forge.FailQuota, "spent"},
		{"unknown reason", `echo '{"type":"result","error":{"reason":"tired","message":"no more"}}'`, forge.FailCrashed, "no more"},
		{"signal", "kill -9 $$", forge.FailCrashed, "status 137"},
		{"writes", "touch planted; echo '" + good + "'", forge.FailUnsafe, "ours changed the checkout, although it was only allowed to read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := script(t, tt.script, nil)
			f := agent.AsFailure(err)
			if f == nil || f.Reason != tt.reason || !strings.Contains(f.Message, tt.message) {
				t.Errorf("got %v\nwant %s: %s", err, tt.reason, tt.message)
			}
			if tt.reason == forge.FailQuota && f != nil && !f.Until.Equal(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("until %s", f.Until)
			}
		})
	}
}

// A call without a checkout is not to blame for what changes in a repository around it.
func TestWithoutCheckout(t *testing.T) {
	_, err := script(t, "touch ../planted; echo '"+good+"'", func(c *agent.Call, _ *config.AgentConfig) {
		c.ScratchDir = filepath.Join(c.Dir, "scratch")
		c.Dir = c.ScratchDir
		if err := os.Mkdir(c.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*agent.Call, *config.AgentConfig){
		"ours cannot be kept from writing": func(_ *agent.Call, c *config.AgentConfig) { c.ReadOnly = false },
		"which is in the checkout": func(call *agent.Call, c *config.AgentConfig) {
			conformance.Write(t, filepath.Join(call.Dir, "tools", "agent"), "x")
			c.Command = append(c.Command, "tools/agent")
		},
	} {
		_, err := script(t, "exit 0", change)
		if f := agent.AsFailure(err); f == nil || f.Reason != forge.FailConfig || !strings.Contains(f.Message, name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Setenv("FORGE_AGENT_MY_TOOL_API_KEY", "x")
	t.Setenv("FORGE_AGENT_OTHER_API_KEY", "y")
	conn, err := forgeexec.Credentials("my-tool", credentials.Variables{}.Prefixed)(t.Context(), agent.Call{})
	if diff := cmp.Diff([]string{"API_KEY=x"}, conn.Env); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestProgramAndItsChildrenHaveItsKey: a program of a project has the credentials
// that are set for it, and so has whatever it runs, however deep; none of those
// of others. The guide says so, as no token takes the place of such a key.
func TestProgramAndItsChildrenHaveItsKey(t *testing.T) {
	t.Setenv("FORGE_AGENT_OURS_API_KEY", "ours-key")
	t.Setenv("FORGE_AGENT_OTHER_API_KEY", "other-key")
	t.Setenv("ANTHROPIC_API_KEY", "model-key")
	const looks = `sh -c "env; sh -c env" | grep -e -key | sort | tr '\n' ' '`
	program := filepath.Join(t.TempDir(), "program")
	text := "#!/bin/sh\ncat >/dev/null\nprintf '{\"type\":\"result\",\"text\":\"%s\"}\\n' \"$(" + looks + ")\"\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	opts := cli.Options{Connect: forgeexec.Credentials("ours", credentials.Variables{}.Prefixed)}
	call := agent.Call{
		Role: agent.RoleImplement, Dir: t.TempDir(), ScratchDir: t.TempDir(), StateDir: t.TempDir(), Prompt: "p", Session: agent.Session{ID: agent.NewSessionID()},
	}
	if out, err := exec.Command("git", "-C", call.Dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := forgeexec.New("ours", config.AgentConfig{Command: []string{program}}, opts).Run(t.Context(), call, nil)
	if want := "API_KEY=ours-key API_KEY=ours-key"; err != nil || strings.TrimSpace(out.Text) != want {
		t.Errorf("what it runs has %q, want %q; %v", out.Text, want, err)
	}
}
