// Package opencode runs opencode without a terminal, with models of the Messages API.
//
// The CLI obeys settings, plugins, commands and MCP servers that it finds in the
// directory where it runs and above. So it runs in an empty directory that it does not
// take for a repository, and is told the checkout's absolute path. Its commands start
// in the checkout all the same, by a script that BASH_ENV names. The checkout's
// AGENTS.md, or else CLAUDE.md, is read.
//
// Only the tools of the call exist; for a read-only call these exclude all that write
// or run commands.
//
// A session is a SQLite database of its own in the state directory. The CLI would retry
// a refused request for ever, so a plugin of ours reports refusals, and the reader ends
// the turn; see plugin.js and reader.onRefused.
package opencode

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
)

const (
	keyVariable   = "ANTHROPIC_API_KEY"
	tokenVariable = "ANTHROPIC_AUTH_TOKEN" //nolint:gosec // a name
	baseVariable  = "ANTHROPIC_BASE_URL"
	defaultBase   = "https://api.anthropic.com"
	defaultModel  = "claude-sonnet-4-5" // opencode has no default without its list of models
)

// About describes the CLI.
func About() cli.About {
	return cli.About{
		Backend: config.AgentOpencode, Command: "opencode", Install: "npm install -g opencode-ai", Oldest: "1.18.33",
		Login: []string{keyVariable, tokenVariable}, Key: keyVariable, Endpoint: baseVariable,
	}
}

// New returns the back end.
func New(opts cli.Options) *cli.Program {
	return &cli.Program{
		About: About(), Options: opts, EnforcesReadOnly: true,
		LostSession: []string{"session not found", "file is not a database", "disk image is malformed"},
		Command:     command,
		Reader:      func(t *cli.Turn, log *cli.Recorder) cli.Reader { return newReader(t, log) },
		StoredFiles: databaseFiles,
	}
}

// command returns how the CLI is called, after it has prepared the directories.
func command(t *cli.Turn) (cli.Invocation, error) {
	tools, err := t.ParseTools(config.AgentOpencode)
	if err != nil {
		return cli.Invocation{}, err
	}
	work := filepath.Join(t.Home, "work")
	if err := prepareHome(t, work, tools); err != nil {
		return cli.Invocation{}, agent.Fail(forge.FailRepository, "%v", err)
	}
	// Without a title opencode asks the model for one.
	args := []string{"run", "--format", "json", "--title", "forge", "-m", "forge/" + model(t)}
	if t.Native != "" {
		_, session, _ := strings.Cut(t.Native, "_")
		args = append(args, "-s", session)
	} else if err := removeDatabase(t); err != nil {
		return cli.Invocation{}, agent.Fail(forge.FailRepository, "%v", err)
	}
	none := filepath.Join(t.Home, "none")
	return cli.Invocation{
		Args: args, Dir: work, Stdin: []byte(t.Call.Prompt),
		Env: []string{
			// The turn's own variables override this address.
			baseVariable + "=" + defaultBase,
			"OPENCODE_DB=" + database(t),
			// Only bash reads BASH_ENV.
			"SHELL=/bin/bash",
			"BASH_ENV=" + filepath.Join(t.Home, "enter.sh"),
			// No list of models from the network, no managed settings, updates,
			// plugins, skills or language servers, and no settings of a project.
			"OPENCODE_MODELS_PATH=" + filepath.Join(t.Home, "models.json"),
			"OPENCODE_TEST_MANAGED_CONFIG_DIR=" + none,
			"OPENCODE_DISABLE_AUTOUPDATE=1",
			"OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
			"OPENCODE_DISABLE_EXTERNAL_SKILLS=1",
			"OPENCODE_DISABLE_LSP_DOWNLOAD=1",
			"OPENCODE_DISABLE_MODELS_FETCH=1",
			"OPENCODE_DISABLE_PROJECT_CONFIG=1",
		},
	}, nil
}

// model returns the name of the model to use.
func model(t *cli.Turn) string {
	if t.Call.Model != "" {
		return t.Call.Model
	}
	return defaultModel
}

// database returns the path of the session's database.
func database(t *cli.Turn) string { return filepath.Join(t.StateDir, t.Call.Session.ID+".db") }

// nativeID returns the id that package cli stores for a session of opencode: the name
// of its database and opencode's own id.
func nativeID(t *cli.Turn, session string) string { return t.Call.Session.ID + "_" + session }

// removeDatabase removes the database of an attempt that was cut off, so that its
// session id can begin anew.
func removeDatabase(t *cli.Turn) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(database(t) + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// plugin reports the model's refusals in the output.
//
//go:embed plugin.js
var plugin string

// prepareHome makes the directory to run in, and fills the home with settings, system
// prompt, plugin, and the script that moves commands into the checkout.
func prepareHome(t *cli.Turn, work string, tools cli.Tools) error {
	home := filepath.Join(t.Home, ".config")
	for _, dir := range []string{work, home} { // left by the first turn of the call
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(home, "opencode", "node_modules"), 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(settings(t, tools))
	if err != nil {
		return err
	}
	system := t.Call.System + "\n"
	if t.Call.Dir != t.Call.ScratchDir {
		system += fmt.Sprintf("\nThe repository is in %s. Give absolute paths. Commands start there.\n", t.Call.Dir)
	}
	return process.Fill(t.Home, map[string]string{
		"work/.git":                        "no repository\n", // broken, so that opencode looks for no repository further up
		systemFile:                         system,
		"models.json":                      "{}",
		"enter.sh":                         cli.EnterScript(work, t.Call.Dir),
		".config/opencode/opencode.json":   string(data),
		".config/opencode/plugin/forge.js": plugin,
		// Our plugin needs no package; this keeps opencode from fetching its plugin API.
		".config/opencode/package-lock.json": `{"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}`,
	})
}

// systemFile has the system prompt, below the home.
const systemFile = "system.md"

type object = map[string]any

// settings returns the CLI's opencode.json. The key stays in a variable.
func settings(t *cli.Turn, tools cli.Tools) object {
	key := keyVariable
	if t.Getenv(key) == "" {
		key = tokenVariable
	}
	return object{
		"autoupdate": false, "share": "disabled", "snapshot": false, "lsp": false, "formatter": false,
		"enabled_providers": []string{"forge"},
		// A provider of our own, with address and key from variables.
		"provider": object{"forge": object{
			"npm": "@ai-sdk/anthropic", "name": "forge",
			"options": object{"baseURL": "{env:" + baseVariable + "}/v1", "apiKey": "{env:" + key + "}"},
			"models":  object{model(t): object{"limit": object{"context": 200_000, "output": 32_000}}},
		}},
		"instructions": append([]string{filepath.Join(t.Home, systemFile)}, conventionsFile(&t.Call)...),
		"permission":   permission(&t.Call, tools),
		"experimental": object{"continue_loop_on_deny": true},
	}
}

// permissionNames has the CLI's permissions for each of Claude Code's tools. A single
// one covers all changes of files.
var permissionNames = map[string][]string{
	"Read":  {"read"},
	"Glob":  {"list", "glob"},
	"Grep":  {"grep"},
	"Write": {"edit"},
	"Edit":  {"edit"},
}

// permission returns the CLI's rules about tools: all are denied but those of the call.
// Of the rules that match, the last counts; "*" is the first when encoded as JSON. What
// else an agent may reach is for our sandbox to limit.
func permission(call *agent.Call, tools cli.Tools) object {
	out := object{"*": "deny"}
	for _, name := range tools.Files {
		for _, p := range permissionNames[name] {
			if p != "glob" && p != "grep" || HasRipgrep() {
				out[p] = "allow"
			}
		}
	}
	// A read-only call may read below the checkout and nowhere else.
	if call.ReadOnly {
		if len(tools.Files) > 0 {
			out["external_directory"] = object{"*": "deny", filepath.Join(call.Dir, "*"): "allow"}
		}
		return out
	}
	out["external_directory"], out["todowrite"], out["doom_loop"] = "allow", "allow", "allow"
	switch {
	case tools.Shell:
		out["bash"] = "allow"
	case len(tools.Commands) > 0:
		commands := object{"*": "deny"}
		for _, c := range tools.Commands {
			commands[c+" *"] = "allow"
		}
		out["bash"] = commands
	}
	return out
}

// HasRipgrep reports whether rg is in PATH. Without it the CLI would download one for
// each call, so the tools that search are left out.
func HasRipgrep() bool {
	_, err := exec.LookPath("rg")
	return err == nil
}

// conventionsFile returns the checkout's file with instructions for agents, if it has
// one. Of a change that the call judges, there is none.
func conventionsFile(call *agent.Call) []string {
	if call.Uninstructed() {
		return nil
	}
	for _, name := range []string{"AGENTS.md", "CLAUDE.md"} {
		path := filepath.Join(call.Dir, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			return []string{path}
		}
	}
	return nil
}

// databaseFiles returns the files of a session's database.
func databaseFiles(state, native string) ([]string, error) {
	database, _, _ := strings.Cut(native, "_")
	var out []string
	for _, name := range []string{database + ".db", database + ".db-wal"} {
		found, err := cli.Glob(state, name)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}
