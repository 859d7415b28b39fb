// Package claude drives the Claude Code CLI without a terminal.
//
// A call sees nothing of the machine's or the repository's CLI settings: no
// hooks, no MCP servers, no settings.json of the checkout, which could redirect
// the API key. The repository's CLAUDE.md is read.
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

// Agent runs the CLI.
type Agent struct {
	opts Options

	mu             sync.Mutex
	versionChecked map[string]fileStamp // CLIs whose version is good, by path
}

// Options says which CLI to run, and how it reaches its model.
type Options struct {
	Path    string        // of the executable; empty means claude in PATH
	Owner   process.Owner // the service
	Env     []string      // KEY=VALUE: credentials and endpoint; see Credentials
	Connect agent.Connect // gives each call its own; then none of those in Env reach it; may be nil
}

// New returns the agent.
func New(opts Options) *Agent {
	if opts.Path == "" {
		opts.Path = "claude"
	}
	return &Agent{opts: opts, versionChecked: map[string]fileStamp{}}
}

// credentials are the variables by which the CLI finds its model and identifies itself.
var credentials = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"}

// Credentials returns the variables of the service's own environment by which
// the CLI finds its model and identifies itself.
func Credentials() []string {
	return process.Inherit(append(slices.Clone(credentials),
		"HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")...)
}

// Name returns "claude".
func (a *Agent) Name() string { return config.AgentClaude }

// Run makes one call of the CLI, and a second one if its answer has to be mended. It
// succeeded only if the exit status, the result, and the structured answer all say so.
func (a *Agent) Run(ctx context.Context, call agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	return agent.RunWithRepair(ctx, call, sink, a.runOnce)
}

func (a *Agent) runOnce(ctx context.Context, call agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	command, session, err := a.command(ctx, call)
	if err != nil {
		return agent.Outcome{Session: session}, err
	}
	conn, err := a.opts.Connect.Open(ctx, call)
	if err != nil {
		return agent.Outcome{Session: session}, err
	}
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
		return out, f
	}
	return out, nil
}

// withoutCredentials returns the environment without the credentials that all calls share, if
// this one has its own.
func (a *Agent) withoutCredentials(env, own []string) []string {
	if len(own) == 0 {
		return env
	}
	return slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(credentials, name)
	})
}

// finalFailure says why a call failed, whoever ended it, or returns nil. limited may know
// more about when it is worth trying again.
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
