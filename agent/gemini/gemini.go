// Package gemini drives the Gemini CLI without a terminal.
//
// The CLI obeys what it finds in the directory where it runs: settings, hooks, MCP
// servers, tools, policies. So it runs in an empty one, and the checkout is a directory
// that it may work in besides; commands start in the checkout all the same. Its
// GEMINI.md, AGENTS.md and CLAUDE.md are read. There are no tools but those of the call,
// and for one that only reads none that could write or run anything.
package gemini

import (
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

// About is what a person has to know of the CLI.
func About() cli.About {
	return cli.About{
		Backend: config.AgentGemini, Command: "gemini", Install: "npm install -g @google/gemini-cli", Oldest: "0.61.0",
		Login: []string{keyVariable}, Key: keyVariable, Endpoint: baseVariable,
	}
}

// New returns the agent.
func New(opts cli.Options) *cli.Program {
	return &cli.Program{
		About: About(), Options: opts, EnforcesReadOnly: true,
		LostSession: []string{"error resuming session", "invalid session identifier"},
		Command:     command,
		Reader:      func(t *cli.Turn, log *cli.Recorder) cli.Reader { return newReader(t, log) },
		StoredFiles: sessionFiles,
	}
}

// own has the CLI's tools for each of a call.
var toolNames = map[string][]string{
	"Read":  {"read_file", "read_many_files"},
	"Glob":  {"glob", "list_directory"},
	"Grep":  {"grep_search"},
	"Write": {"write_file"},
	"Edit":  {"replace"},
}

const shell = "run_shell_command"

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
	mode := "yolo" // what it may reach is for our sandbox to say
	if t.Call.ReadOnly || len(tools.Commands) > 0 {
		mode = "default" // asks for what no rule allows; without a person that is a no
	}
	args := []string{
		"-o", "stream-json", "--skip-trust", "--approval-mode", mode, "-e", "none", "--include-directories", t.Call.Dir,
	}
	if t.Call.Model != "" {
		args = append(args, "-m", t.Call.Model)
	}
	if t.Native != "" {
		args = append(args, "--resume", t.Native)
	} else {
		args = append(args, "--session-id", newSession(t))
	}
	return cli.Invocation{
		Args: args, Dir: work, Stdin: []byte(t.Call.Prompt),
		Env: []string{
			"GEMINI_CLI_HOME=" + t.Home,
			"GEMINI_CLI_NO_RELAUNCH=true",
			"GEMINI_CLI_SYSTEM_SETTINGS_PATH=" + filepath.Join(t.Home, "none"),
			"GEMINI_CLI_SYSTEM_DEFAULTS_PATH=" + filepath.Join(t.Home, "none"),
			"BASH_ENV=" + filepath.Join(t.Home, "enter.sh"),
			"NODE_OPTIONS=--require=" + strconv.Quote(filepath.Join(t.Home, "blocking.cjs")),
		},
	}, nil
}

// newSession returns our id for a new session, or another one if that is taken: the
// call died, and its checkout with it.
func newSession(t *cli.Turn) string {
	id := t.Call.Session.ID
	if found, err := sessionFiles(t.StateDir, id); err != nil || len(found) > 0 {
		return agent.NewSessionID()
	}
	return id
}

// prepareHome makes the empty directory, and the home with the settings, who the agent is,
// and what brings commands into the checkout.
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
	data, err := json.Marshal(settings(t, tools))
	if err != nil {
		return err
	}
	system := t.Call.System + "\n"
	if t.Call.Dir != t.Call.ScratchDir {
		system += fmt.Sprintf("\nThe repository is in %s. Give absolute paths. Commands start there.\n", t.Call.Dir)
	}
	if err := process.Fill(t.Home, map[string]string{
		".gemini/settings.json":       string(data),
		".gemini/GEMINI.md":           system,
		".gemini/policies/forge.toml": policy(tools),
		"enter.sh":                    cli.EnterScript(work, t.Call.Dir),
		"blocking.cjs":                blocking,
	}); err != nil {
		return err
	}
	if err := os.Symlink(sessions, filepath.Join(home, "tmp")); err != nil && !errors.Is(err, fs.ErrExist) { // of the first of two turns
		return err
	}
	return nil
}

// blocking makes the CLI write its output before it exits: what a pipe does not take at
// once would be lost. The commands that it runs are not concerned.
const blocking = `delete process.env.NODE_OPTIONS;
for (const s of [process.stdout, process.stderr]) s._handle?.setBlocking?.(true);
`

type object = map[string]any

// coreTools returns the CLI's names of a call's tools.
func coreTools(tools cli.Tools) []string {
	out := []string{} // not null, which would be all
	for _, name := range tools.Files {
		out = append(out, toolNames[name]...)
	}
	if tools.Shell || len(tools.Commands) > 0 {
		out = append(out, shell)
	}
	return out
}

// policy returns a policy of the CLI that allows what it would ask for, where not all is
// allowed: to change files, and the commands that begin as given.
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

func settings(t *cli.Turn, tools cli.Tools) object {
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
			"fileName": []string{"GEMINI.md", "AGENTS.md", "CLAUDE.md"}, "loadMemoryFromIncludeDirectories": true,
			"memoryBoundaryMarkers": []string{}, // not those of a repository around where it runs
		},
		"hooksConfig":  object{"enabled": false},
		"skills":       object{"enabled": false},
		"experimental": object{"enableAgents": false},
		"tools":        object{"core": coreTools(tools), "sandbox": false, "useRipgrep": false},
	}
}

// sessionFiles returns the one file that a session is. Its name has the beginning of the id.
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
