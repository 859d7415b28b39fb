package claude

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// Limits of a call that has none of its own, and of one line of output.
const (
	defaultTurns  = 100
	defaultOutput = 512 << 20 // the output repeats each file that is read or written
	maxLine       = 32 << 20
	maxPrompt     = 1 << 20
	minBudget     = 0.0001 // in USD; the CLI takes no 0
)

// command returns the CLI's command line and the id of its session.
func (a *Agent) command(ctx context.Context, call agent.Call) (process.Command, string, error) {
	none := process.Command{}
	text, err := stdinPrompt(call.Prompt, call.Dir)
	if err != nil {
		return none, call.Session.ID, err
	}
	home, err := process.PrivateHome(call.ScratchDir)
	if err != nil {
		return none, call.Session.ID, agent.Fail(forge.FailRepository, "%v", err)
	}
	path, err := a.checkedPath(ctx, home)
	if err != nil {
		return none, call.Session.ID, err
	}
	// The CLI keeps its sessions in its own directory of settings.
	settings := filepath.Join(stateDir(call), stateName)
	s, err := findSession(settings, call.Session)
	if err != nil {
		return none, call.Session.ID, err
	}
	args, err := arguments(call, s)
	if err != nil {
		return none, s.id, err
	}
	limits := process.Limits{
		Wall: call.Limits.Wall, Idle: call.Limits.Idle, OutputBytes: call.Limits.OutputBytes, LineBytes: maxLine,
	}
	if limits.OutputBytes == 0 {
		limits.OutputBytes = defaultOutput
	}
	return process.Command{
		Path: path, Args: args, Dir: call.Dir, Owner: a.opts.Owner, Stdin: text, Limits: limits, Sandbox: call.Sandbox,
		Env: environment(home, settings, limits.Idle, instructions(&call), a.opts.Env, call.Env),
	}, s.id, nil
}

// stateDir returns the directory that session files go to.
func stateDir(call agent.Call) string {
	if call.StateDir != "" {
		return call.StateDir
	}
	return call.ScratchDir
}

// stdinPrompt returns the text for the CLI's stdin. A prompt that starts with a slash
// is prefixed, because the CLI would take it for one of its own commands. The checkout's
// path, which the tools need, comes last: the system prompt is the same for all checkouts.
func stdinPrompt(text, dir string) ([]byte, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, agent.Fail(forge.FailConfig, "the prompt is empty")
	case len(text) > maxPrompt:
		return nil, agent.Fail(forge.FailPromptTooLong, "the prompt is %d bytes long; at most %d are allowed", len(text), maxPrompt)
	case strings.HasPrefix(strings.TrimSpace(text), "/"):
		text = "Request:\n" + text
	}
	return []byte(strings.TrimRight(text, "\n") + "\n\nWorking directory: " + dir + "\n"), nil
}

// environment returns the CLI's complete environment. settings is the CLI's own
// directory; the entries of more override the basic ones. The limits on commands keep a
// silent one from ending the whole call as idle.
func environment(home, settings string, idle time.Duration, more ...[]string) []string {
	env := process.Environment(
		home,
		"CLAUDE_CONFIG_DIR="+settings,
		// No telemetry, updates, memory across sessions, or commands that outlive their
		// turn.
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_AUTO_MEMORY=1",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1",
		// Nor a place for tools that are loaded later: there are only those of --tools.
		"ENABLE_TOOL_SEARCH=false",
		// No advice on commits and no status of git: that changes with every commit, and what
		// comes after it in a request could not be read from the model's cache any more.
		"CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS=1",
		// Give up soon when the model is overloaded: the flow tries again later, and
		// does not hold a worker meanwhile.
		"CLAUDE_CODE_MAX_RETRIES=4",
		"API_TIMEOUT_MS=300000",
		"BASH_DEFAULT_TIMEOUT_MS="+bashTimeout(idle, 2*time.Minute),
		"BASH_MAX_TIMEOUT_MS="+bashTimeout(idle, 10*time.Minute),
	)
	for _, m := range more {
		env = process.Merge(env, m)
	}
	return env
}

// instructions returns the variable that has the CLI read the CLAUDE.md of the checkout,
// which --add-dir makes an additional directory; or, for a call that judges what is in
// the checkout, no such file: neither there nor around it, nor beside a file that it
// reads.
func instructions(call *agent.Call) []string {
	if call.Uninstructed() {
		return []string{"CLAUDE_CODE_DISABLE_CLAUDE_MDS=1"}
	}
	return []string{"CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1"}
}

// bashTimeout returns the smaller of most and nine tenths of idle, in milliseconds.
func bashTimeout(idle, most time.Duration) string {
	if idle > 0 {
		most = min(most, idle-idle/10)
	}
	return strconv.FormatInt(most.Milliseconds(), 10)
}

// arguments returns the flags of a call.
func arguments(call agent.Call, s session) ([]string, error) {
	turns := call.Limits.MaxTurns
	if turns <= 0 {
		turns = defaultTurns
	}
	args := []string{
		// One prompt from stdin, and the output as a stream of JSON messages.
		"-p", "--output-format", "stream-json", "--verbose",
		"--include-partial-messages", // to count tokens and show progress while a message is streamed
		"--setting-sources=",         // no settings of the user or the repository
		// No MCP servers but those of a flag that is not given, and no commands by
		// slash.
		"--strict-mcp-config", "--disable-slash-commands",
		"--max-turns", fmt.Sprint(turns),
		"--settings", `{"disableAllHooks":true,"includeCoAuthoredBy":false,"attribution":{"commit":"","pr":""}}`,
	}
	if !call.Uninstructed() {
		args = append(args, "--add-dir", call.Dir) // for its CLAUDE.md
	}
	if call.Model != "" {
		args = append(args, "--model", call.Model)
	}
	if call.Effort != "" {
		args = append(args, "--effort", string(call.Effort))
	}
	if call.Limits.BudgetUSD > 0 {
		args = append(args, "--max-budget-usd", fmt.Sprintf("%.4f", max(call.Limits.BudgetUSD, minBudget)))
	}
	if call.System != "" {
		file := filepath.Join(call.ScratchDir, "system.md")
		if err := process.Fill(call.ScratchDir, map[string]string{"system.md": call.System}); err != nil {
			return nil, agent.Fail(forge.FailRepository, "the system prompt cannot be written: %v", err)
		}
		// Instead of the CLI's own, which is for a person at a terminal and contradicts ours.
		args = append(args, "--system-prompt-file", file)
	}
	if len(call.Schema) > 0 {
		args = append(args, "--json-schema", string(call.Schema))
	}
	may, err := permissions(call)
	if err != nil {
		return nil, err
	}
	return append(append(args, s.arguments()...), may...), nil
}

// reading has the tools that cannot change anything.
var reading = map[string]bool{"Read": true, "Glob": true, "Grep": true}

// permissions returns the flags that decide which tools exist and may be used. Tools
// that could write do not exist for a read-only call: an agent cannot be talked into
// using a tool that it does not have. Bash can be limited to commands, in parentheses.
// The CLI does not enforce such a limit for other tools, so it is refused.
func permissions(call agent.Call) ([]string, error) {
	var tools, bash []string
	for _, t := range call.Tools {
		if call.ReadOnly && !reading[t] {
			continue
		}
		switch name, _, limited := strings.Cut(t, "("); {
		case name == "Bash":
			bash = append(bash, t)
		case limited:
			return nil, agent.Fail(forge.FailConfig, "tool %s: Claude Code can limit Bash only, as in Bash(go test:*); name %s whole, or leave it out", t, name)
		default:
			tools = append(tools, t)
		}
	}
	if len(bash) > 0 {
		tools = append(tools, "Bash")
	}
	args := []string{"--tools", strings.Join(tools, ","), "--permission-mode", "dontAsk"}
	if !call.ReadOnly {
		args[3] = "acceptEdits"
	}
	if len(bash) > 0 {
		args = append(append(args, "--allowedTools"), bash...)
	}
	return args, nil
}
