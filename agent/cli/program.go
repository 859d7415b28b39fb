// Package cli is what all back ends have in common that drive a command-line program:
// they say how it is called and what its output means, and this package finds it, keeps
// it to its limits, checks its answer, and remembers its sessions.
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

// Program is a back end's CLI. It is the whole of an agent.Agent.
type Program struct {
	About            About
	Options          Options  // as the back end was given them
	MaxPrompt        int      // bytes; 0 means 1 MiB
	EnforcesReadOnly bool     // it can be kept from writing by other means than a sandbox
	ReportsCost      bool     // it reports a cost of its own
	TakesSchema      bool     // it takes a schema; otherwise that is put into the prompt
	LostSession      []string // what it says of a session that it does not have, in lower case

	// Command says how to call it for a turn. An error is a *agent.Failure.
	Command func(*Turn) (Invocation, error)
	// Reader returns what follows its output, telling the log.
	Reader func(*Turn, *Recorder) Reader
	// State tells the states of the checkout apart, for a program that promises to change
	// nothing, and could; nil for others.
	CheckoutState func(context.Context, *Turn) (string, error)
	// Files lists the files of one of its sessions, relative to its state directory.
	StoredFiles func(state, native string) ([]string, error)
}

// Options says how a back end reaches its model, and for whom it runs.
type Options struct {
	Path    string        // of the executable; empty means the one in PATH
	Owner   process.Owner // the service
	Env     []string      // KEY=VALUE: credentials and endpoint
	Connect agent.Connect // per call; may be nil
}

// RetriesVariable is a variable of Options: how often a CLI asks a model again that
// failed. Without it, that is the CLI's own affair.
const RetriesVariable = "FORGE_MODEL_RETRIES"

// Turn is one run of the program: a call makes one, or two if its answer has to be mended.
type Turn struct {
	Call     agent.Call
	Home     string   // private, empty at first
	StateDir string   // the program's own directory, kept from call to call
	Native   string   // the program's session to go on with; empty means a new one
	Env      []string // KEY=VALUE: options, connection and call in one
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

// Invocation is how the program is called.
type Invocation struct {
	Args  []string
	Dir   string   // to run in; empty means the checkout
	Env   []string // beside that of the Turn, which wins
	Stdin []byte
}

// Reader follows the program's output.
type Reader interface {
	// Line takes one line of stdout.
	Line(line []byte)
	// End says why the turn failed, or nil. Afterwards the log is complete.
	End(report process.Report) *agent.Failure
}

// Defaults of the limits.
const (
	defaultTurns     = 100
	defaultOutput    = 256 << 20
	defaultMaxPrompt = 1 << 20
	maxLine          = 32 << 20
)

// Name returns the back end's name.
func (p *Program) Name() string { return p.About.Backend }

// Run makes one call, and one more in the same session if the answer has to be mended.
func (p *Program) Run(ctx context.Context, call agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	if call.Session.ID == "" {
		call.Session.ID = agent.NewSessionID() // a repair goes on with it
	}
	return agent.RunWithRepair(ctx, call, sink, p.runOnce)
}

func (p *Program) runOnce(ctx context.Context, call agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	out := agent.Outcome{Session: call.Session.ID}
	path, err := p.lookPath()
	if err != nil {
		return out, err
	}
	if !p.CanRun(&call) {
		return out, agent.Fail(forge.FailConfig, "nothing keeps %s from writing here, so it cannot %s; choose another agent for that role in %s",
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

// CanRun reports whether the program may make a call of that kind: one that only reads
// needs something that keeps it from writing.
func (p *Program) CanRun(call *agent.Call) bool {
	return !call.ReadOnly || p.EnforcesReadOnly || call.Sandbox != nil || call.Dir == call.ScratchDir
}

// CheckInstalled returns why the program is not there, or nil.
func (p *Program) CheckInstalled() error {
	_, err := p.lookPath()
	return err
}

// sharedEnv returns what all calls have of the options: not the credentials, if a call has
// its own.
func (p *Program) sharedEnv(own []string) []string {
	if len(own) == 0 {
		return p.Options.Env
	}
	return slices.DeleteFunc(slices.Clone(p.Options.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == p.About.Key || name == p.About.Endpoint || slices.Contains(p.About.Login, name)
	})
}

// runUnchanged runs a call, and looks whether one that only reads kept to that, where
// nothing but the program's promise makes it.
func (p *Program) runUnchanged(ctx context.Context, t *Turn, run func() (agent.Outcome, error)) (agent.Outcome, error) {
	if p.CheckoutState == nil || !t.Call.ReadOnly || t.Call.Sandbox != nil || t.Call.Dir == t.Call.ScratchDir { // without a checkout
		return run()
	}
	before, err := p.CheckoutState(ctx, t)
	if err != nil {
		return agent.Outcome{Session: t.Call.Session.ID}, agent.AsFailure(err)
	}
	out, err := run()
	if ctx.Err() != nil {
		return out, err
	}
	if after, stateErr := p.CheckoutState(ctx, t); stateErr != nil || after != before {
		return out, agent.Fail(forge.FailUnsafe, "%s changed the checkout, and was only to read", p.About.Backend)
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

func (p *Program) run(ctx context.Context, path string, t *Turn, conn agent.Connection, sink func(agent.Event)) (agent.Outcome, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	call := &t.Call
	log := &Recorder{call: call, sink: sink, stop: stop, counted: conn.Usage, priced: p.ReportsCost, saveNative: func(native string) error {
		return saveSession(t.StateDir, call.Session.ID, native)
	}}
	in, err := p.Command(t)
	if err != nil {
		return log.outcome(), err
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
	out := log.outcome()
	out.Duration = time.Since(started)
	switch {
	case err != nil:
		return out, setUntil(agent.AsFailure(err), conn.Limited)
	case failure != nil:
		return out, setUntil(p.markLost(failure), conn.Limited)
	}
	return out, extractAnswer(&out, call)
}

// setUntil fills in until when a limit holds, if the connection knows that.
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

// markLost turns the program's word that it does not know a session into that reason.
func (p *Program) markLost(f *agent.Failure) *agent.Failure {
	for _, s := range p.LostSession {
		if Contains(f.Message, s) {
			f.Reason = forge.FailLostSession
		}
	}
	return f
}

func (p *Program) lookPath() (string, error) {
	path := p.Options.Path
	if path == "" {
		path = p.About.Command
	}
	path, err := exec.LookPath(path)
	if err == nil {
		return filepath.Abs(path)
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return "", agent.Fail(forge.FailMissingCLI, "%v; install it with %s, or choose another agent in %s", err, p.About.Install, config.FileName)
	}
	return "", agent.AsFailure(err)
}

func stateDir(call *agent.Call) string {
	if call.StateDir != "" {
		return call.StateDir
	}
	return call.ScratchDir
}

// Price returns the usage with its cost, if it has none.
func Price(model string, u forge.Usage) forge.Usage {
	if u.CostUSD == 0 {
		u.CostUSD = price.Cost(model, u)
	}
	return u
}
