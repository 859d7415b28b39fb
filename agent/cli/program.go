// Package cli has the parts that back ends share which drive a command-line program.
//
// A back end such as package codex fills in a Program: how the CLI is called for a
// Turn, and a Reader that understands its output. Program then is the complete
// agent.Agent. For each call it
//
//  1. finds the executable and checks that a read-only call can be kept from writing;
//  2. prepares a private home, the state directory, the session and the prompt;
//  3. runs the CLI by package process, with the Reader on its output;
//  4. extracts the answer and checks it against the schema;
//  5. asks once more, in the same session, if the answer was wrong.
//
// The Reader reports to a Recorder, which turns the reports into events and an outcome,
// and stops the CLI when the call exceeds its turns or its budget. Package claude does
// the same for Claude Code on its own.
//
// CONTRIBUTING.md lists what a new back end needs.
package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/price"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
)

// Program is an agent.Agent made from a description of one CLI. Its fields are set
// once, before the first call.
type Program struct {
	// About names the CLI in messages and finds it.
	About About
	// Options are those that the back end was created with.
	Options Options
	// EnforcesReadOnly says that the CLI itself can be kept from writing, so that
	// read-only calls need no sandbox.
	EnforcesReadOnly bool
	// ReportsCost says that the CLI reports a cost. Otherwise package price computes
	// it.
	ReportsCost bool
	// TakesSchema says that the CLI has an option for the schema. Otherwise the schema
	// is appended to the prompt.
	TakesSchema bool
	// LostSession lists texts, in lower case, by which the CLI says that it does not
	// have a session. A failure with one of them becomes FailLostSession.
	LostSession []string

	// Command returns the CLI's arguments for a turn. An error is a *agent.Failure.
	Command func(*Turn) (Invocation, error)
	// Reader returns a reader of the turn's output that reports to the recorder.
	Reader func(*Turn, *Recorder) Reader
	// CheckoutState returns a fingerprint of the checkout. It is set for a CLI that
	// only promises not to write: a read-only call that changes the fingerprint fails
	// as FailUnsafe.
	CheckoutState func(context.Context, *Turn) (string, error)
	// StoredFiles lists the files of one of the CLI's sessions, relative to the CLI's
	// state directory.
	StoredFiles func(state, native string) ([]string, error)
}

// Options says how a back end reaches its model, and for which service it runs.
type Options struct {
	// Path is the executable's path; empty means About.Command in PATH.
	Path string
	// Owner is the service.
	Owner process.Owner
	// Env has KEY=VALUE credentials and endpoint that all calls share.
	Env []string
	// Connect gives each call its own credentials, which replace those of Env. May be
	// nil.
	Connect agent.Connect
}

// RetriesVariable is a variable of Options.Env: how often a CLI repeats a request to
// the model that failed. Without it the CLI decides.
const RetriesVariable = "FORGE_MODEL_RETRIES"

// Turn is one run of the program. A call has one, or two if its answer is repaired.
type Turn struct {
	// Call is the agent's call; its Prompt is ready for the CLI's stdin.
	Call agent.Call
	// Home is the private HOME of the call. The second turn of a call finds in it the
	// files of the first.
	Home string
	// StateDir is the CLI's own directory below the call's StateDir, kept between
	// calls.
	StateDir string
	// Native is the CLI's id of the session to resume; empty means a new session.
	Native string
	// Env has KEY=VALUE entries: those of options, connection and call, later ones
	// overriding earlier ones.
	Env []string
}

// Getenv returns a variable of Env, or "".
func (t *Turn) Getenv(name string) string {
	for _, kv := range t.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// Invocation is how the program is called for one turn.
type Invocation struct {
	Args []string
	// Dir is the directory to run in; empty means the checkout.
	Dir string
	// Env is added to the basic environment. Turn.Env overrides it.
	Env   []string
	Stdin []byte
}

// Reader understands a program's output. Line is called for each line of stdout, then
// End once.
type Reader interface {
	// Line takes one line of stdout, without its end.
	Line(line []byte)
	// End returns why the turn failed, or nil. It must report the final usage to the
	// recorder.
	End(report process.Report) *agent.Failure
}

// Limits of a turn where the call has none, and of the length of a prompt and of one line
// of output, in bytes.
const (
	defaultTurns  = 100
	defaultOutput = 256 << 20
	maxPrompt     = 1 << 20
	maxLine       = 32 << 20
)

// Name returns the back end's name in pfl-forge.yaml.
func (p *Program) Name() string { return p.About.Backend }

// Run makes one call, with one repair of its answer; see agent.RunWithRepair.
func (p *Program) Run(ctx context.Context, call agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	if call.Session.ID == "" {
		call.Session.ID = agent.NewSessionID() // so that a repair can resume the session
	}
	return agent.RunWithRepair(ctx, call, sink, p.runOnce)
}

// runOnce makes one turn of a call. It is the agent.RunFunc that Run repairs.
func (p *Program) runOnce(ctx context.Context, call agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	out := agent.Outcome{Session: call.Session.ID}
	path, err := p.lookPath()
	if err != nil {
		return out, err
	}
	if !p.CanRun(&call) {
		return out, agent.Fail(forge.FailConfig, "%s cannot be kept from writing here, so it cannot %s; choose another agent for that role in %s",
			p.About.Backend, call.Role, config.FileName)
	}
	turn, err := p.newTurn(&call)
	if err != nil {
		return out, err
	}
	conn, err := p.Options.Connect.Open(ctx, call)
	if err != nil {
		return out, err
	}
	defer conn.Close()
	for _, env := range [][]string{p.sharedEnv(conn.Env), conn.Env, call.Env} {
		turn.Env = process.Merge(turn.Env, env)
	}
	return p.runUnchanged(ctx, turn, func() (agent.Outcome, error) { return p.run(ctx, path, turn, conn, sink) })
}

// CanRun reports whether the program may make a call. A read-only one needs a means
// that keeps the CLI from writing: the CLI's own, a sandbox, or the absence of a
// checkout.
func (p *Program) CanRun(call *agent.Call) bool {
	return !call.ReadOnly || p.EnforcesReadOnly || call.Sandbox != nil || call.Dir == call.ScratchDir
}

// CheckInstalled returns a *agent.Failure if the executable cannot be found, or nil.
func (p *Program) CheckInstalled() error {
	_, err := p.lookPath()
	return err
}

// sharedEnv returns Options.Env, without credentials and endpoint if the call's
// connection has its own: the CLI must not see a key that it does not need.
func (p *Program) sharedEnv(own []string) []string {
	if len(own) == 0 {
		return p.Options.Env
	}
	return slices.DeleteFunc(slices.Clone(p.Options.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == p.About.Key || name == p.About.Endpoint || slices.Contains(p.About.Login, name)
	})
}

// runUnchanged makes a turn, and compares CheckoutState before and after a read-only
// one where only the CLI's promise protects the checkout.
func (p *Program) runUnchanged(ctx context.Context, t *Turn, run func() (agent.Outcome, error)) (agent.Outcome, error) {
	if p.CheckoutState == nil || !t.Call.ReadOnly || t.Call.Sandbox != nil || t.Call.Dir == t.Call.ScratchDir { // without a checkout
		return run()
	}
	before, err := p.CheckoutState(ctx, t)
	if err != nil {
		return agent.Outcome{Session: t.Call.Session.ID}, agent.AsFailure(err)
	}
	out, err := run()
	// An ended call says nothing about the checkout: its caller discards that.
	if ctx.Err() != nil {
		return out, err
	}
	if after, stateErr := p.CheckoutState(ctx, t); stateErr != nil || after != before {
		return out, agent.Fail(forge.FailUnsafe, "%s changed the checkout, although it was only allowed to read", p.About.Backend)
	}
	return out, err
}

// newTurn prepares the directories, the session and the prompt of a call.
func (p *Program) newTurn(call *agent.Call) (*Turn, error) {
	home, err := process.PrivateHome(call.ScratchDir)
	if err != nil {
		return nil, agent.Fail(forge.FailRepository, "%v", err)
	}
	t := &Turn{Home: home, StateDir: filepath.Join(stateDir(call), p.About.Backend)}
	if err := os.MkdirAll(t.StateDir, 0o700); err != nil {
		return nil, agent.Fail(forge.FailRepository, "%v", err)
	}
	if t.Native, err = findSession(t.StateDir, call.Session); err != nil {
		return nil, err
	}
	if err := p.preparePrompt(call); err != nil {
		return nil, err
	}
	t.Call = *call
	return t, nil
}

// run executes the CLI for one turn and returns when all its processes are gone. The
// outcome is filled in as far as the output went, also beside an error.
func (p *Program) run(ctx context.Context, path string, t *Turn, conn agent.Connection, sink func(agent.Event)) (agent.Outcome, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	call := &t.Call
	log := NewRecorder(call, sink, stop)
	log.counted, log.priced = conn.Usage, p.ReportsCost
	log.saveNative = func(native string) error { return saveSession(t.StateDir, call.Session.ID, native) }
	in, err := p.Command(t)
	if err != nil {
		return log.Outcome(), err
	}
	reader := p.Reader(t, log)
	if in.Dir == "" {
		in.Dir = call.Dir
	}
	command := process.Command{
		Path: path, Args: in.Args, Dir: in.Dir, Stdin: in.Stdin, Owner: p.Options.Owner, Sandbox: call.Sandbox,
		Env: process.Merge(process.Environment(t.Home, in.Env...), t.Env),
		Limits: process.Limits{
			Wall: call.Limits.Wall, Idle: call.Limits.Idle, OutputBytes: call.Limits.OutputBytes, LineBytes: maxLine,
		},
		Line: func(from process.Stream, line []byte) {
			if from == process.Stdout {
				reader.Line(line)
			}
		},
	}
	if command.Limits.OutputBytes == 0 {
		command.Limits.OutputBytes = defaultOutput
	}
	started := time.Now()
	report, err := process.Run(ctx, command)
	failure := reader.End(report)
	out := log.Outcome()
	out.Duration = time.Since(started)
	switch {
	case err != nil:
		return out, setUntil(agent.AsFailure(err), conn.Limited)
	case failure != nil && conn.Spent != nil && conn.Spent():
		return out, agent.Fail(forge.FailBudget, "its next request does not fit in what is left of the $%.2f reserved for this call ($%.2f spent): %s",
			call.Limits.BudgetUSD, out.Usage.CostUSD, failure.Message)
	case failure != nil:
		return out, setUntil(p.markLost(failure), conn.Limited)
	}
	return out, extractAnswer(&out, call)
}

// setUntil sets the end of a limit if the CLI did not report it and the connection
// knows.
func setUntil(f *agent.Failure, until func() time.Time) *agent.Failure {
	switch f.Reason {
	case forge.FailRateLimited, forge.FailQuota, forge.FailOverloaded:
		if until != nil && f.Until.IsZero() {
			f.Until = until()
		}
	default:
	}
	return f
}

// markLost changes the reason of a failure that is about an unknown session.
func (p *Program) markLost(f *agent.Failure) *agent.Failure {
	for _, s := range p.LostSession {
		if Contains(f.Message, s) {
			f.Reason = forge.FailLostSession
		}
	}
	return f
}

// lookPath returns the executable's absolute path. Its error says how to install it.
func (p *Program) lookPath() (string, error) {
	path := p.Options.Path
	if path == "" {
		path = p.About.Command
	}
	found, err := exec.LookPath(path)
	if err == nil {
		return filepath.Abs(found)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", agent.Fail(forge.FailMissingCLI, "%s is not in PATH; install it with %s, or choose another agent in %s", path, p.About.Install, config.FileName)
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return "", agent.Fail(forge.FailMissingCLI, "%v; install it with %s, or choose another agent in %s", err, p.About.Install, config.FileName)
	}
	return "", agent.AsFailure(err)
}

// stateDir returns the directory that session files go to.
func stateDir(call *agent.Call) string {
	if call.StateDir != "" {
		return call.StateDir
	}
	return call.ScratchDir
}

// Price returns the usage with its cost at list price, unless it has a cost already.
func Price(model string, u forge.Usage) forge.Usage {
	if u.CostUSD == 0 {
		u.CostUSD = price.Cost(model, u)
	}
	return u
}
