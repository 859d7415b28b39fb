// Package conformance is the test suite for every back end that drives a model: the
// same calls with the real CLI and a scripted model of package agenttest.
//
// A back end's test describes the CLI in a Backend and calls Run. The suite then
// checks, in parallel, that the back end
//
//   - answers in every role, with exactly the tools of the role (roles.go);
//   - resumes sessions, also after a kill and on another machine (session.go);
//   - keeps limits, reports failures by their reason, and counts every token (limit.go,
//     work.go);
//   - obeys nothing that a hostile repository contains, and leaves no process behind.
//
// A back end that passes can be used by all services; package
// jobs/backends lists them.
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

// Backend describes a back end and its CLI to the suite.
type Backend struct {
	// New returns the back end. path is the CLI's path, empty for the real one; env is
	// the result of Env, or nil.
	New func(t testing.TB, path string, env []string) agent.Agent

	// Env returns the credentials and the variables that direct the CLI to a base URL.
	// They must make the CLI not repeat failed requests.
	Env func(base string) []string

	// Model is a model name that the CLI accepts.
	Model string

	// Shell replies with the CLI's tool that runs a command.
	Shell func(command string) agenttest.Step

	// Write replies with a tool that writes a file; nil if there is none but Shell.
	Write func(path string) agenttest.Step

	// Read replies with a tool that reads a file; nil if there is none but Shell.
	Read func(path string) agenttest.Step

	// Harmless lists the tools that always exist and neither read nor write.
	Harmless []string

	// Limited lists the CLI's tools of a call that may Read, Write and Bash(git
	// commit:*); nil if the CLI cannot be limited, so that such a call fails.
	Limited []string

	// Obeys is the name of a file that the CLI obeys whatever its settings say, so that
	// only its absence helps; empty if there is none.
	Obeys string

	// Answer replies with a structured answer.
	Answer func(answer any) agenttest.Step

	// Trap writes files into the repository at dir that could make the CLI send its
	// requests to the base URL evil, or run the command.
	Trap func(t testing.TB, dir, evil, command string)
}

// Run runs the suite. Its tests run in parallel.
func Run(t *testing.T, b Backend) {
	t.Setenv("CONFORMANCE_CANARY", canary) // no call may see the service's environment
	t.Run("suite", func(t *testing.T) {
		for _, c := range testsize.First(5, cases) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, &b)
			})
		}
	})
}

// canary is in the service's environment, and must not be in that of any call.
const canary = "CANARY-5f2a"

type object = map[string]any

// cases lists the suite's tests.
var cases []struct {
	name string
	run  func(*testing.T, *Backend)
}

// init makes the list of what every back end has to do. Each entry is a
// sentence of what the package promises of agents, whichever CLI does the work.
func init() { //nolint:gochecknoinits // the list refers to functions that refer to it
	cases = []struct {
		name string
		run  func(*testing.T, *Backend)
	}{
		{"corrects an answer once", repairsAnswer},
		{"roles", runsRoles},
		{"a change gives no orders", givesNoOrders},
		{"limited tools", limitsTools},
		{"implements and resumes", implements},
		{"continues elsewhere after a kill", resumesElsewhere},
		{"loses a session", losesSession},
		{"wall clock", func(t *testing.T, b *Backend) { endsByLimit(t, b, forge.FailTimeout) }},
		{"idle", func(t *testing.T, b *Backend) { endsByLimit(t, b, forge.FailIdle) }},
		{"odd prompts and failures of the model", reportsFailures},
		{"output flood", floodsOutput},
		{"budget", exceedsBudget},
		{"turns", exceedsTurns},
		{"effort", thinksAsTold},
		{"results of commands", reportsCommands},
		{"empty prompt", refusesEmptyPrompt},
		{"missing CLI", missesCLI},
	}
}

// fixture is one checkout, one back end, one scripted model, and the call to make.
type fixture struct {
	*testing.T
	*Backend

	// model has one scenario, "main"; plantTraps adds "evil".
	model *agenttest.Server
	agent agent.Agent
	// call is made by run. Tests change it before.
	call agent.Call
	// mark is in the environment of every process of the calls.
	mark string

	mu sync.Mutex
	// seen has the events so far.
	seen []agent.Event
}

// prompt is that of the first call; other prompts of the suite differ from it.
const prompt = "Change the greeting, FIRST-PROMPT."

// newFixture returns a fixture whose model replies with the steps, one per request.
func newFixture(t *testing.T, b *Backend, role agent.Role, steps ...agenttest.Step) *fixture {
	t.Helper()
	return newScripted(t, b, role, agenttest.InOrder(steps...))
}

// newScripted returns a fixture for a role's call, with the role's schema and rights.
func newScripted(t *testing.T, b *Backend, role agent.Role, scenario agenttest.Scenario) *fixture {
	t.Helper()
	x := &fixture{T: t, Backend: b, model: agenttest.NewServer(t), mark: rand.Text()}
	x.agent = b.New(t, "", b.Env(x.model.Script("main", scenario)))
	spec := agent.Spec(role)
	x.call = agent.Call{
		Role: role, Dir: checkout(t), ScratchDir: t.TempDir(), StateDir: t.TempDir(),
		// The prompts have words that the tests look for in the model's requests.
		Prompt: prompt, System: "You are the " + string(role) + " agent, SYSTEM-PROMPT.", Model: b.Model,
		Tools: []string{"Read", "Glob", "Grep"}, ReadOnly: spec.ReadOnly(), Schema: spec.Schema,
		Session: agent.Session{ID: agent.NewSessionID()},
		Limits:  agent.Limits{Wall: 5 * time.Minute, Idle: 4 * time.Minute}, // a busy machine needs them
		Env: []string{
			"CONFORMANCE_MARK=" + x.mark,
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		},
	}
	// The tools that the services give to an implementer by default.
	if !x.call.ReadOnly {
		x.call.Tools = []string{"Bash", "Read", "Write", "Edit", "Glob", "Grep"}
	}
	t.Cleanup(x.mustLeaveNoProcess)
	return x
}

// checkout returns a repository with one commit.
func checkout(t *testing.T) string {
	t.Helper()
	// CLIs report real paths.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "checkout")
	Write(t, filepath.Join(dir, "greeting.txt"), "hello, GREETING\n")
	// Every back end has to show the repository's conventions to the model.
	Write(t, filepath.Join(dir, "CLAUDE.md"), "REPOSITORY-CONVENTIONS\n")
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", ".")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first")
	return dir
}

// git runs git in dir and returns its output.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Write writes a test's file, and makes its directory.
func Write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run makes the fixture's call with a new scratch directory.
func (x *fixture) run() (agent.Outcome, error) {
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

// mustRun makes the call, which must succeed.
func (x *fixture) mustRun() agent.Outcome {
	x.Helper()
	out, err := x.run()
	if err != nil {
		x.Fatalf("%v\nsaid %q", err, out.Text)
	}
	return out
}

// mustFail makes the call, which must fail for that reason.
func (x *fixture) mustFail(reason forge.FailureReason) (agent.Outcome, *agent.Failure) {
	x.Helper()
	out, err := x.run()
	var f *agent.Failure
	if !errors.As(err, &f) || f.Reason != reason {
		x.Fatalf("got %v, want %s; said %q", err, reason, out.Text)
	}
	return out, f
}

// last returns the last request to the model.
func (x *fixture) last() agenttest.Request {
	x.Helper()
	all := x.model.Requests("main")
	if len(all) == 0 {
		x.Fatal("the model was not asked")
	}
	return all[len(all)-1]
}

// mustLeaveNoProcess looks for running processes of the calls.
func (x *fixture) mustLeaveNoProcess() {
	x.Helper()
	// The environment is inherited by daemons, too, whatever session they are in.
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
