// Package claude drives the Claude Code CLI without a terminal.
//
// A call sees nothing of the machine's or the repository's CLI settings: no
// hooks, no MCP servers, no settings.json of the checkout, which could redirect
// the API key. The repository's CLAUDE.md is read.
package claude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
)

// Agent runs the CLI.
type Agent struct {
	opts Options
}

// Options says which CLI to run, and how it reaches its model.
type Options struct {
	Path  string        // of the executable; empty means claude in PATH
	Owner process.Owner // the service
	Env   []string      // KEY=VALUE: credentials and endpoint; see Credentials
}

// New returns the agent.
func New(opts Options) *Agent {
	if opts.Path == "" {
		opts.Path = "claude"
	}
	return &Agent{opts: opts}
}

// Credentials returns the variables of the service's own environment by which
// the CLI finds its model and identifies itself.
func Credentials() []string {
	return process.Inherit(
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL",
		"HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	)
}

// Name returns "claude".
func (a *Agent) Name() string { return config.AgentClaude }

// Defaults of the limits.
const (
	defaultTurns  = 100
	defaultOutput = 256 << 20 // every file that is read or written is in the output
	maxLine       = 32 << 20
	maxPrompt     = 1 << 20
)

// Run makes one call of the CLI. It succeeded only if the exit status, the
// result's subtype, its is_error, and the structured answer all say so.
func (a *Agent) Run(ctx context.Context, call agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	command, session, err := a.command(call)
	if err != nil {
		return agent.Outcome{Session: session}, err
	}
	t := newTranscript(call.Dir, session, sink)
	command.Line = func(from process.Stream, line []byte) {
		if from == process.Stdout {
			t.line(line)
		}
	}
	started := time.Now()
	report, err := process.Run(ctx, command)
	out := t.outcome()
	out.Duration = time.Since(started)
	if err != nil {
		return out, agent.AsFailure(err)
	}
	if f := t.failure(report); f != nil {
		return out, f
	}
	return out, t.answer(&out, len(call.Schema) > 0)
}

// command returns the CLI's invocation, and the session's id.
func (a *Agent) command(call agent.Call) (process.Command, string, error) {
	path, err := a.find()
	if err != nil {
		return process.Command{}, call.Session.ID, err
	}
	home, err := process.PrivateHome(call.ScratchDir)
	if err != nil {
		return process.Command{}, call.Session.ID, agent.Fail(forge.FailRepository, "%v", err)
	}
	settings := filepath.Join(stateDir(call), "claude")
	s, err := findSession(settings, call.Session)
	if err != nil {
		return process.Command{}, call.Session.ID, err
	}
	args, err := arguments(call, s)
	if err != nil {
		return process.Command{}, s.id, err
	}
	limits := process.Limits{
		Wall: call.Limits.Wall, Idle: call.Limits.Idle, OutputBytes: call.Limits.OutputBytes, LineBytes: maxLine,
	}
	if limits.OutputBytes == 0 {
		limits.OutputBytes = defaultOutput
	}
	prompt, err := prompt(call.Prompt)
	return process.Command{
		Path: path, Args: args, Dir: call.Dir, Owner: a.opts.Owner, Stdin: prompt, Limits: limits,
		Env: environment(home, settings, a.opts.Env, call.Env),
	}, s.id, err
}

func (a *Agent) find() (string, error) {
	path, err := exec.LookPath(a.opts.Path)
	if err == nil {
		return filepath.Abs(path)
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return "", agent.Fail(forge.FailMissingCLI,
			"%v; install it with npm install -g @anthropic-ai/claude-code, or set agent: recipe in %s", err, config.FileName)
	}
	return "", agent.AsFailure(err)
}

func stateDir(call agent.Call) string {
	if call.StateDir != "" {
		return call.StateDir
	}
	return call.ScratchDir
}

// prompt returns what the CLI reads from stdin. Text that starts with a slash
// would be taken for one of its commands.
func prompt(text string) ([]byte, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, agent.Fail(forge.FailConfig, "the prompt is empty")
	case len(text) > maxPrompt:
		return nil, agent.Fail(forge.FailConfig, "the prompt is %d bytes long; at most %d are allowed", len(text), maxPrompt)
	case strings.HasPrefix(strings.TrimSpace(text), "/"):
		text = "Request:\n" + text
	}
	return []byte(text), nil
}

// environment returns all that the CLI sees. settings is its own directory.
func environment(home, settings string, more ...[]string) []string {
	env := process.Environment(
		home,
		"CLAUDE_CONFIG_DIR="+settings,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_AUTO_MEMORY=1",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1",
		"CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1",
		"CLAUDE_CODE_MAX_RETRIES=4",
		"API_TIMEOUT_MS=300000",
		"BASH_DEFAULT_TIMEOUT_MS=120000",
		"BASH_MAX_TIMEOUT_MS=600000",
	)
	for _, m := range more {
		env = process.Merge(env, m)
	}
	return env
}

// arguments returns the flags of a call.
func arguments(call agent.Call, s session) ([]string, error) {
	turns := call.Limits.MaxTurns
	if turns <= 0 {
		turns = defaultTurns
	}
	args := []string{
		"-p", "--output-format", "stream-json", "--verbose",
		"--setting-sources=", "--add-dir", call.Dir, // no settings of anybody, but the repository's CLAUDE.md
		"--strict-mcp-config", "--disable-slash-commands",
		"--max-turns", fmt.Sprint(turns),
		"--settings", `{"disableAllHooks":true,"includeCoAuthoredBy":false,"attribution":{"commit":"","pr":""}}`,
	}
	if call.Model != "" {
		args = append(args, "--model", call.Model)
	}
	if call.Limits.BudgetUSD > 0 {
		args = append(args, "--max-budget-usd", fmt.Sprintf("%.4f", call.Limits.BudgetUSD))
	}
	if call.System != "" {
		file := filepath.Join(call.ScratchDir, "system.md")
		if err := os.WriteFile(file, []byte(call.System), 0o600); err != nil {
			return nil, agent.Fail(forge.FailRepository, "the system prompt cannot be written: %v", err)
		}
		args = append(args, "--append-system-prompt-file", file)
	}
	if len(call.Schema) > 0 {
		args = append(args, "--json-schema", string(call.Schema))
	}
	args = append(args, s.arguments()...)
	return append(args, permissions(call)...), nil
}

// reading are the tools that cannot change anything.
var reading = map[string]bool{"Read": true, "Glob": true, "Grep": true}

// permissions returns the flags by which the tools exist and may be used. What
// a read-only call could write with does not exist for it.
func permissions(call agent.Call) []string {
	var tools []string
	bash := false
	for _, t := range call.Tools {
		if call.ReadOnly && !reading[t] {
			continue
		}
		tools = append(tools, t)
		bash = bash || t == "Bash"
	}
	args := []string{"--tools", strings.Join(tools, ","), "--permission-mode", "dontAsk"}
	if !call.ReadOnly {
		args[3] = "acceptEdits"
	}
	if bash {
		args = append(args, "--allowedTools", "Bash")
	}
	return args
}
