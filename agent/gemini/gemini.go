// Package gemini runs the Gemini CLI without a terminal.
//
// The CLI obeys settings, hooks, MCP servers, tools and policies that it finds in the
// directory where it runs. So it runs in an empty directory, and the checkout is given
// to it as a further one that it may work in. Its commands start in the checkout all
// the same, by a script that BASH_ENV names. The checkout's GEMINI.md, AGENTS.md and
// CLAUDE.md are read.
//
// Only the tools of the call exist; for a read-only call these exclude all that write
// or run commands. What else an agent may reach is for our sandbox to limit.
//
// The CLI stores a session in one file, which also has the usage while a turn goes on.
package gemini

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
)

const (
	keyVariable  = "GEMINI_API_KEY"
	baseVariable = "GOOGLE_GEMINI_BASE_URL"
)

// About describes the CLI.
func About() cli.About {
	return cli.About{
		Backend: config.AgentGemini, Command: "gemini", Install: "npm install -g @google/gemini-cli", Oldest: "0.61.0",
		Login: []string{keyVariable}, Key: keyVariable, Endpoint: baseVariable,
	}
}

// New returns the back end.
func New(opts cli.Options) *cli.Program {
	return &cli.Program{
		About: About(), Options: opts, EnforcesReadOnly: true,
		LostSession: []string{"error resuming session", "invalid session identifier"},
		Command:     command,
		Reader:      func(t *cli.Turn, log *cli.Recorder) cli.Reader { return newReader(t, log) },
		StoredFiles: sessionFiles,
	}
}

// toolNames has the CLI's tools for each of Claude Code's.
var toolNames = map[string][]string{
	"Read":  {"read_file", "read_many_files"},
	"Glob":  {"glob", "list_directory"},
	"Grep":  {"grep_search"},
	"Write": {"write_file"},
	"Edit":  {"replace"},
}

// shell is the CLI's tool that runs commands.
const shell = "run_shell_command"

// command returns how the CLI is called, after it has prepared the directories.
func command(t *cli.Turn) (cli.Invocation, error) {
	if strings.Contains(t.Call.Dir, ",") {
		return cli.Invocation{}, agent.Fail(forge.FailConfig, "gemini cannot work in %s: there is a comma in it", t.Call.Dir)
	}
	tools, err := t.ParseTools(config.AgentGemini)
	if err != nil {
		return cli.Invocation{}, err
	}
	work := filepath.Join(t.StateDir, "work")
	if err := prepareHome(t, work, tools); err != nil {
		return cli.Invocation{}, agent.Fail(forge.FailRepository, "%v", err)
	}
	mode := "yolo" // our sandbox limits it
	if t.Call.ReadOnly || len(tools.Commands) > 0 {
		mode = "default" // asks about tools that no rule allows; without a person they are denied
	}
	// No extensions (-e none), and no question whether the directory is trusted.
	args := []string{
		"-o", "stream-json", "--skip-trust", "--approval-mode", mode, "-e", "none", "--include-directories", t.Call.Dir,
	}
	if t.Call.Model != "" {
		args = append(args, "-m", t.Call.Model)
	}
	// A new session gets our id, so that a killed call's session can be found.
	if t.Native != "" {
		args = append(args, "--resume", t.Native)
	} else {
		args = append(args, "--session-id", newSession(t))
	}
	return cli.Invocation{
		Args: args, Dir: work, Stdin: []byte(t.Call.Prompt),
		Env: []string{
			"GEMINI_CLI_HOME=" + t.Home,
			// No second process, and no settings of the machine.
			"GEMINI_CLI_NO_RELAUNCH=true",
			"GEMINI_CLI_SYSTEM_SETTINGS_PATH=" + filepath.Join(t.Home, "none"),
			"GEMINI_CLI_SYSTEM_DEFAULTS_PATH=" + filepath.Join(t.Home, "none"),
			"BASH_ENV=" + filepath.Join(t.Home, "enter.sh"),
			"NODE_OPTIONS=--require=" + strconv.Quote(filepath.Join(t.Home, "blocking.cjs")),
		},
	}, nil
}

// newSession returns our id for a new session. If the CLI already has a file for it,
// from a call that died, it returns another id: the CLI refuses one that is taken.
func newSession(t *cli.Turn) string {
	id := t.Call.Session.ID
	if found, err := sessionFiles(t.StateDir, id); err != nil || len(found) > 0 {
		return agent.NewSessionID()
	}
	return id
}

// prepareHome makes the empty directory to run in, and fills the home with settings,
// system prompt, policy, and the script that moves commands into the checkout.
func prepareHome(t *cli.Turn, work string, tools cli.Tools) error {
	home := filepath.Join(t.Home, ".gemini")
	sessions := filepath.Join(t.StateDir, "tmp")
	for _, dir := range []string{work, sessions} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if entries, err := os.ReadDir(work); err != nil || len(entries) > 0 {
		return fmt.Errorf("%s must be empty, and is not; %w", work, err)
	}
	names := instructionFiles(&t.Call)
	data, err := json.Marshal(settings(t, tools, names))
	if err != nil {
		return err
	}
	system := t.Call.System + "\n"
	if t.Call.Dir != t.Call.ScratchDir {
		system += fmt.Sprintf("\nThe repository is in %s. Give absolute paths. Commands start there.\n", t.Call.Dir)
	}
	if err := process.Fill(t.Home, map[string]string{
		".gemini/settings.json":       string(data),
		".gemini/" + names[0]:         system,
		".gemini/policies/forge.toml": policy(tools),
		"enter.sh":                    cli.EnterScript(work, t.Call.Dir),
		"blocking.cjs":                blocking,
	}); err != nil {
		return err
	}
	if err := os.Symlink(sessions, filepath.Join(home, "tmp")); err != nil && !errors.Is(err, fs.ErrExist) { // left by the first turn of the call
		return err
	}
	return nil
}

// blocking makes the CLI write its output synchronously. Otherwise it exits before a
// full pipe has taken everything, and the rest is lost. It does not apply to the
// commands that the CLI runs.
const blocking = `delete process.env.NODE_OPTIONS;
for (const s of [process.stdout, process.stderr]) s._handle?.setBlocking?.(true);
`

type object = map[string]any

// coreTools returns the CLI's names of a call's tools. It is never nil, which would
// mean all tools.
func coreTools(tools cli.Tools) []string {
	out := []string{} // null would mean all tools
	for _, name := range tools.Files {
		out = append(out, toolNames[name]...)
	}
	if tools.Shell || len(tools.Commands) > 0 {
		out = append(out, shell)
	}
	return out
}

// policy returns a policy file that allows file changes and the listed commands, for a
// call in which the CLI would otherwise ask a person. It is empty for a call without
// such a list.
func policy(tools cli.Tools) string {
	var b strings.Builder
	if len(tools.Commands) > 0 {
		b.WriteString("[[rule]]\ntoolName = [\"write_file\", \"replace\"]\ndecision = \"allow\"\npriority = 900\n")
	}
	for _, c := range tools.Commands {
		fmt.Fprintf(&b, "[[rule]]\ntoolName = %q\ncommandPrefix = %q\ndecision = \"allow\"\npriority = 900\n", shell, c)
	}
	return b.String()
}

// instructionFiles returns the names of files that the CLI takes instructions from. The
// first one, in the home, is ours. For a call that judges what is in the checkout it is the
// only one, and is called so that no file of the checkout can have its name. The
// CLI reads GEMINI.md all the same, so the reviewer takes that out of the checkout.
func instructionFiles(call *agent.Call) []string {
	if call.Uninstructed() {
		return []string{"forge-" + rand.Text() + ".md"}
	}
	return []string{"GEMINI.md", "AGENTS.md", "CLAUDE.md"}
}

// settings returns the CLI's settings.json. names are those of instructionFiles.
func settings(t *cli.Turn, tools cli.Tools, names []string) object {
	general := object{
		"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "checkpointing": object{"enabled": false},
		"sessionRetention": object{"enabled": false},
	}
	if t.Getenv(cli.RetriesVariable) == "0" {
		general["maxAttempts"], general["retryFetchErrors"] = 1, false
	}
	return object{
		"general":   general,
		"security":  object{"auth": object{"selectedType": "gemini-api-key"}, "folderTrust": object{"enabled": false}},
		"privacy":   object{"usageStatisticsEnabled": false},
		"telemetry": object{"enabled": false},
		"advanced":  object{"ignoreLocalEnv": true},
		"context": object{
			"fileName": names, "loadMemoryFromIncludeDirectories": !t.Call.Uninstructed(),
			"memoryBoundaryMarkers": []string{}, // not those of a repository around the working directory
		},
		"hooksConfig":  object{"enabled": false},
		"skills":       object{"enabled": false},
		"experimental": object{"enableAgents": false},
		"tools":        object{"core": coreTools(tools), "sandbox": false, "useRipgrep": false},
	}
}

// sessionFiles returns the files of a session. A file's name has only the beginning of
// the id, so its first line is compared too.
func sessionFiles(state, native string) ([]string, error) {
	found, err := cli.Glob(state, "tmp/*/chats/session-*-"+native[:min(8, len(native))]+".jsonl")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range found {
		if cli.HasPrefix(filepath.Join(state, f), `{"sessionId":"`+native+`"`) {
			out = append(out, f)
		}
	}
	return out, nil
}
