// Package claude runs the Claude Code CLI without a terminal.
//
// Run builds a command line (command.go) and an environment from scratch, starts the
// CLI by package process, and reads its output, one JSON message per line, with an
// outputReader (output.go). A usageMeter adds up the tokens while messages are
// streamed, so that a call ends soon after its budget is spent. When the CLI has ended,
// failure.go decides from exit status, result and stderr whether the call succeeded.
//
// A call does not see the CLI settings of the machine or the repository: no hooks, no
// MCP servers, no settings.json of the checkout, which could redirect the API key. The
// repository's CLAUDE.md is read.
//
// The CLI stores a session in one file, below the call's StateDir. A call with Resume
// passes that file's path, which works on any machine and from any directory.
package claude

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
)

// Agent runs the CLI. It is safe for concurrent use.
type Agent struct {
	opts Options

	mu sync.Mutex
	// versionChecked has the executables whose version is recent enough, by path.
	versionChecked map[string]fileStamp
}

// Options says which CLI to run, for which service, and how it reaches its model.
type Options struct {
	// Path is the executable's path; empty means claude in PATH.
	Path string
	// Owner is the service.
	Owner process.Owner
	// Env has KEY=VALUE credentials and endpoint that all calls share.
	Env []string
	// Connect gives each call its own credentials, which replace those of Env. May be
	// nil.
	Connect agent.Connect
}

// New returns the back end. It does not look for the executable yet.
func New(opts Options) *Agent {
	if opts.Path == "" {
		opts.Path = "claude"
	}
	return &Agent{opts: opts, versionChecked: map[string]fileStamp{}}
}

// credentials lists the variables for the key and the address of the model's API.
var credentials = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"}

// Name returns "claude".
func (a *Agent) Name() string { return config.AgentClaude }

// Run makes one call, with one repair of its answer; see agent.RunWithRepair. It
// succeeds only if exit status, result and structured answer all say so.
func (a *Agent) Run(ctx context.Context, call agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	return agent.RunWithRepair(ctx, call, sink, a.runOnce)
}

// runOnce runs the CLI once. It is the agent.RunFunc that Run repairs.
func (a *Agent) runOnce(ctx context.Context, call agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	command, session, err := a.command(ctx, call)
	if err != nil {
		return agent.Outcome{Session: session}, err
	}
	conn, err := a.opts.Connect.Open(ctx, call)
	if err != nil {
		return agent.Outcome{Session: session}, err
	}
	// The connection's variables win over those of the options and the call.
	command.Env = process.Merge(a.withoutCredentials(command.Env, conn.Env), conn.Env)

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t := newOutputReader(call.Dir, session, sink)
	t.counted, t.budget, t.stop = conn.Usage, call.Limits.BudgetUSD, stop
	command.Line = func(from process.Stream, line []byte) {
		if from == process.Stdout {
			t.onLine(line)
		}
	}
	started := time.Now()
	report, err := process.Run(ctx, command)
	conn.Close()
	out := t.outcome()
	out.Duration = time.Since(started)
	if f := t.finalFailure(report, err, conn.Limited); f != nil {
		if err == nil && conn.Spent != nil && conn.Spent() {
			f = t.budgetFailure("its next request does not fit in what is left")
		}
		return out, f
	}
	return out, nil
}

// withoutCredentials returns env without the credentials that all calls share, if the
// call's connection has its own: the CLI must not see a key that it does not need.
func (a *Agent) withoutCredentials(env, own []string) []string {
	if len(own) == 0 {
		return env
	}
	return slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(credentials, name)
	})
}

// finalFailure returns why a call failed, whoever ended it, or nil. err is the error of
// process.Run. limited may be nil; otherwise it sets the end of a limit that the CLI
// did not report.
func (t *outputReader) finalFailure(report process.Report, err error, limited func() time.Time) *agent.Failure {
	var f *agent.Failure
	switch {
	case errors.Is(err, errBudget):
		f = t.budgetFailure("by pfl-forge, because the CLI went on")
	case err != nil:
		f = agent.AsFailure(err)
	default:
		f = t.failure(report)
	}
	if f == nil || limited == nil || !f.Until.IsZero() {
		return f
	}
	switch f.Reason {
	case forge.FailRateLimited, forge.FailQuota, forge.FailOverloaded:
		f.Until = limited()
	default:
	}
	return f
}
