package claude_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/agenttest/conformance"
	"github.com/pfl-forge/pfl-forge/agent/claude"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
)

// TestMain puts into the environment what no agent may see.
func TestMain(m *testing.M) {
	if err := os.Setenv("SERVICE_SECRET", "CANARY"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// bench is one checkout, and the real CLI against a scripted model.
type bench struct {
	t     testing.TB
	model *agenttest.Server
	cli   *claude.Agent
	call  agent.Call
	mu    sync.Mutex
	seen  []agent.Event
}

// shared is asked for its version once.
var (
	shared     *claude.Agent
	sharedOnce sync.Once
)

func realCLI(t testing.TB) *claude.Agent {
	t.Helper()
	path := agenttest.ClaudeCLI(t)
	sharedOnce.Do(func() {
		shared = claude.New(claude.Options{Path: path, Owner: process.NewOwner(os.TempDir())})
	})
	return shared
}

func newBench(t *testing.T, role agent.Role, scenario agenttest.Scenario) *bench {
	t.Helper()
	t.Parallel()
	return newSerialBench(t, role, scenario)
}

func newSerialBench(t testing.TB, role agent.Role, scenario agenttest.Scenario) *bench {
	t.Helper()
	model := agenttest.NewServer(t)
	b := &bench{t: t, model: model, cli: realCLI(t)}
	spec := agent.Spec(role)
	b.call = agent.Call{
		Role: role, Dir: checkout(t), ScratchDir: t.TempDir(), StateDir: t.TempDir(),
		Prompt: "Change the greeting.", System: "You are the " + string(role) + " agent.", Model: "sonnet",
		Tools: spec.ToolsOf(config.Default()), ReadOnly: spec.ReadOnly(), Schema: spec.Schema,
		Session: agent.Session{ID: agent.NewSessionID()},
		Limits:  agent.Limits{Wall: 50 * time.Second, Idle: 40 * time.Second},
		Env: []string{
			"ANTHROPIC_BASE_URL=" + model.Script("main", scenario), "ANTHROPIC_API_KEY=test-key",
			"CLAUDE_CODE_MAX_RETRIES=0", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		},
	}
	return b
}

func checkout(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	conformance.Write(t, filepath.Join(dir, "greeting.txt"), "hello\n")
	conformance.Write(t, filepath.Join(dir, "CLAUDE.md"), "REPOSITORY-CONVENTIONS\n")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first"},
	} {
		git(t, dir, args...)
	}
	return dir
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) run() (agent.Outcome, error) {
	b.t.Helper()
	return b.cli.Run(b.t.Context(), b.call, func(e agent.Event) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.seen = append(b.seen, e)
	})
}

func (b *bench) mustRun() agent.Outcome {
	b.t.Helper()
	out, err := b.run()
	if err != nil {
		b.t.Fatalf("%v\nsaid %q", err, out.Text)
	}
	return out
}

// mustCost checks that the outcome reports exactly the tokens that the model served.
func (b *bench) mustCost(out agent.Outcome) {
	b.t.Helper()
	u := out.Usage
	got := agenttest.Usage{
		Input: int(u.InputTokens), Output: int(u.OutputTokens), CacheRead: int(u.CacheReadTokens), CacheWrite: int(u.CacheWriteTokens),
	}
	if want := b.model.Served("main"); got != want || u.CostUSD <= 0 {
		b.t.Errorf("usage %+v, $%g; the model served %+v", got, u.CostUSD, want)
	}
}

func mustFail(t testing.TB, err error, reason forge.FailureReason, message string) {
	t.Helper()
	var f *agent.Failure
	if !errors.As(err, &f) || f.Reason != reason || !strings.Contains(f.Message, message) {
		t.Errorf("got %v\nwant %s: ...%s...", err, reason, message)
	}
}

func (b *bench) kinds() []agent.EventKind {
	var out []agent.EventKind
	for _, e := range b.seen {
		if !slices.Contains(out, e.Kind) {
			out = append(out, e.Kind)
		}
	}
	return out
}

type object = map[string]any

func readGreeting(dir string) any { return object{"file_path": filepath.Join(dir, "greeting.txt")} }

var approve = agenttest.Answer(object{"requirements": []any{}, "verdict": "approved", "issues": []string{}})

// script runs a call of a CLI that is this shell script.
func script(t *testing.T, text string, change func(*agent.Call)) (agent.Outcome, error) {
	t.Helper()
	cli := filepath.Join(t.TempDir(), "claude")
	// A process that is forked meanwhile would have the file open for writing,
	// so that it cannot be started.
	syscall.ForkLock.RLock()
	conformance.Write(t, cli, "#!/bin/sh\n[ \"$1\" = --version ] && echo '2.1.330 (Claude Code)' && exit\ncat >prompt\n"+text+"\n")
	syscall.ForkLock.RUnlock()
	if err := os.Chmod(cli, 0o700); err != nil {
		t.Fatal(err)
	}
	call := agent.Call{
		Role: agent.RoleReview, Dir: t.TempDir(), ScratchDir: t.TempDir(), Prompt: "p", Schema: agent.ReviewSchema,
		Session: agent.Session{ID: agent.NewSessionID()},
	}
	if change != nil {
		change(&call)
	}
	return claude.New(claude.Options{Path: cli}).Run(t.Context(), call, nil)
}
