// Package conformance is what every back end must pass that drives a model: the same
// calls, against the real CLI and a scripted model.
package conformance

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// Backend is what the suite has to know of a back end.
type Backend struct {
	// New returns the back end. path is that of the CLI, and empty for the real one; env
	// has what Env returns.
	New func(t testing.TB, path string, env []string) agent.Agent

	// Env returns the credentials, and the way to the model at a base URL. The CLI
	// must not try again what failed.
	Env func(base string) []string

	Model string // a name that the CLI takes

	// Shell replies with the CLI's tool that runs a command.
	Shell func(command string) agenttest.Step

	// Write replies with a tool that writes a file; nil if there is none but Shell.
	Write func(path string) agenttest.Step

	// Read replies with a tool that reads a file; nil if there is none but Shell.
	Read func(path string) agenttest.Step

	// Harmless are the tools that are always there, and neither read nor write.
	Harmless []string

	// Limited are the tools of a call that may Read, Write, and run Bash(git commit:*); nil
	// if the CLI cannot be limited, so that such a call fails.
	Limited []string

	// Answer replies with a structured answer.
	Answer func(answer any) agenttest.Step

	// Trap plants in a repository, below dir, whatever could make the CLI send its
	// requests to the base URL evil, or run the command.
	Trap func(t testing.TB, dir, evil, command string)
}

// Run runs the suite. Its tests run in parallel.
func Run(t *testing.T, b Backend) {
	t.Setenv("CONFORMANCE_CANARY", canary) // no call may see the service's environment
	t.Run("suite", func(t *testing.T) {
		for _, c := range testsize.First(4, cases) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, &b)
			})
		}
	})
}

const canary = "CANARY-5f2a"

type object = map[string]any

var cases []struct {
	name string
	run  func(*testing.T, *Backend)
}

func init() { //nolint:gochecknoinits // the list refers to functions that refer to it
	cases = []struct {
		name string
		run  func(*testing.T, *Backend)
	}{
		{"mends an answer once", mends},
		{"roles", roles},
		{"limited tools", limited},
		{"implements and resumes", implements},
		{"goes on elsewhere after a kill", goesOn},
		{"loses a session", loses},
		{"wall clock", func(t *testing.T, b *Backend) { ends(t, b, forge.FailTimeout) }},
		{"idle", func(t *testing.T, b *Backend) { ends(t, b, forge.FailIdle) }},
		{"odd prompts and failures of the model", failures},
		{"output flood", floods},
		{"budget", spends},
		{"turns", turns},
		{"empty prompt", empty},
		{"missing CLI", missing},
	}
}

// bench is one checkout, one back end and one scripted model.
type bench struct {
	*testing.T
	*Backend

	model *agenttest.Server
	agent agent.Agent
	call  agent.Call
	mark  string // in the environment of every process of the calls

	mu   sync.Mutex
	seen []agent.Event
}

const prompt = "Change the greeting, FIRST-PROMPT."

func start(t *testing.T, b *Backend, role agent.Role, steps ...agenttest.Step) *bench {
	t.Helper()
	return script(t, b, role, agenttest.InOrder(steps...))
}

func script(t *testing.T, b *Backend, role agent.Role, scenario agenttest.Scenario) *bench {
	t.Helper()
	x := &bench{T: t, Backend: b, model: agenttest.NewServer(t), mark: rand.Text()}
	x.agent = b.New(t, "", b.Env(x.model.Script("main", scenario)))
	spec := agent.Spec(role)
	x.call = agent.Call{
		Role: role, Dir: checkout(t), ScratchDir: t.TempDir(), StateDir: t.TempDir(),
		Prompt: prompt, System: "You are the " + string(role) + " agent, SYSTEM-PROMPT.", Model: b.Model,
		Tools: []string{"Read", "Glob", "Grep"}, ReadOnly: spec.ReadOnly(), Schema: spec.Schema,
		Session: agent.Session{ID: agent.NewSessionID()},
		Limits:  agent.Limits{Wall: 5 * time.Minute, Idle: 4 * time.Minute}, // of a busy machine
		Env: []string{
			"CONFORMANCE_MARK=" + x.mark,
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		},
	}
	if !x.call.ReadOnly {
		x.call.Tools = []string{"Bash", "Read", "Write", "Edit", "Glob", "Grep"}
	}
	t.Cleanup(x.mustBeGone)
	return x
}

func checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "checkout")
	Write(t, filepath.Join(dir, "greeting.txt"), "hello, GREETING\n")
	Write(t, filepath.Join(dir, "CLAUDE.md"), "REPOSITORY-CONVENTIONS\n")
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", ".")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first")
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

// Write writes a file of a test, and makes its directory.
func Write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (x *bench) run() (agent.Outcome, error) {
	x.Helper()
	x.call.ScratchDir = x.TempDir() // every call has its own
	call := x.call
	if call.Dir == "" {
		call.Dir = call.ScratchDir // as the services do for a call without a checkout
	}
	return x.agent.Run(x.Context(), call, func(e agent.Event) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.seen = append(x.seen, e)
	})
}

func (x *bench) mustRun() agent.Outcome {
	x.Helper()
	out, err := x.run()
	if err != nil {
		x.Fatalf("%v\nsaid %q", err, out.Text)
	}
	return out
}

func (x *bench) mustFail(reason forge.FailureReason) (agent.Outcome, *agent.Failure) {
	x.Helper()
	out, err := x.run()
	var f *agent.Failure
	if !errors.As(err, &f) || f.Reason != reason {
		x.Fatalf("got %v, want %s; said %q", err, reason, out.Text)
	}
	return out, f
}

func (x *bench) last() agenttest.Request {
	x.Helper()
	all := x.model.Requests("main")
	if len(all) == 0 {
		x.Fatal("the model was not asked")
	}
	return all[len(all)-1]
}

// mustBeGone looks for processes of the calls.
func (x *bench) mustBeGone() {
	x.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		x.Fatal(err)
	}
	for _, path := range found {
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), x.mark) {
			x.Errorf("%s is left", filepath.Dir(path))
		}
	}
}
