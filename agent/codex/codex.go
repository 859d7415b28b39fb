// Package codex runs the Codex CLI without a terminal.
//
// A call does not see the CLI settings of the machine or the repository: no
// config.toml, rules, hooks, MCP servers or skills. The repository's AGENTS.md, or else
// CLAUDE.md, is read.
//
// Codex does all work by shell commands. A read-only call runs in our sandbox or in the
// CLI's own, which keeps commands from writing; where neither works, no command runs at
// all. A call without tools gets no command, and so sees no file.
//
// The CLI stores a session in one file, the rollout. It is also the only place that has
// the usage while a turn goes on; see rollout.go.
package codex

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
)

// About describes the CLI.
func About() cli.About {
	return cli.About{
		Backend: config.AgentCodex, Command: "codex", Install: "npm install -g @openai/codex", Oldest: "0.160.0",
		Login: []string{keyVariable}, Key: keyVariable, Endpoint: baseVariable,
	}
}

const (
	keyVariable  = "OPENAI_API_KEY"
	baseVariable = "OPENAI_BASE_URL"
	defaultBase  = "https://api.openai.com/v1"
)

// New returns the back end.
func New(opts cli.Options) *cli.Program {
	about := About()
	return &cli.Program{
		About: about, Options: opts, EnforcesReadOnly: true, TakesSchema: true,
		LostSession: []string{"no rollout found", "thread/resume failed", "no saved session"},
		Command:     command,
		Reader:      func(t *cli.Turn, log *cli.Recorder) cli.Reader { return newReader(t, log) },
		StoredFiles: rolloutFiles,
	}
}

// disabledFeatures lists features that act on their own, read other settings, or reach
// other services.
var disabledFeatures = []string{
	"apps", "browser_use", "computer_use", "goals", "hooks", "image_generation", "memories", "multi_agent", "plugins",
	"shell_snapshot", "skill_mcp_dependency_install", "unbounded_connection_retries",
}

// command returns how the CLI is called.
func command(t *cli.Turn) (cli.Invocation, error) {
	without, err := withoutFeatures(&t.Call)
	if err != nil {
		return cli.Invocation{}, err
	}
	args := []string{
		// Without the user's configuration and rules, and in a directory that need not
		// be a repository.
		"exec", "--json", "--color", "never", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check", "-C", t.Call.Dir,
	}
	if t.Call.ReadOnly && t.Call.Sandbox == nil {
		args = append(args, "-s", "read-only")
	} else {
		args = append(args, "-s", "danger-full-access") // it has to commit; our sandbox limits it
	}
	for _, f := range slices.Concat(disabledFeatures, without) {
		args = append(args, "--disable", f)
	}
	if t.Call.Model != "" {
		args = append(args, "-m", t.Call.Model)
	}
	for _, s := range settings(t) {
		args = append(args, "-c", s)
	}
	if len(t.Call.Schema) > 0 {
		schema, err := strict(t.Call.Schema)
		if err != nil {
			return cli.Invocation{}, agent.Fail(forge.FailConfig, "the schema of the answer: %v", err)
		}
		if err := process.Fill(t.Home, map[string]string{"schema.json": string(schema)}); err != nil {
			return cli.Invocation{}, agent.Fail(forge.FailRepository, "%v", err)
		}
		args = append(args, "--output-schema", filepath.Join(t.Home, "schema.json"))
	}
	// The subcommand comes after the flags of exec.
	if t.Native != "" {
		args = append(args, "resume", t.Native)
	}
	return cli.Invocation{
		Args:  append(args, "-"),
		Env:   []string{"CODEX_HOME=" + t.StateDir},
		Stdin: []byte(t.Call.Prompt),
	}, nil
}

// withoutFeatures returns the features that a call must not have, beside
// disabledFeatures. The CLI can run any command or none, so a call that needs to write
// but has no Bash is refused.
func withoutFeatures(call *agent.Call) ([]string, error) {
	switch {
	case len(call.Tools) == 0:
		return []string{"shell_tool", "unified_exec"}, nil
	case !call.ReadOnly && !slices.Contains(call.Tools, "Bash"):
		return nil, agent.Fail(forge.FailConfig,
			"codex works through commands only, and cannot be limited to %s; allow Bash without parentheses, or choose another agent in %s",
			strings.Join(call.Tools, ", "), config.FileName)
	}
	return nil, nil
}

// settings returns the CLI's configuration, as KEY=TOML.
func settings(t *cli.Turn) []string {
	base := t.Getenv(baseVariable)
	if base == "" {
		base = defaultBase
	}
	retries := t.Getenv(cli.RetriesVariable)
	if retries == "" {
		retries = "4"
	}
	out := []string{
		// A provider of our own, for the address and the number of retries.
		"model_provider=" + tomlString("forge"),
		fmt.Sprintf("model_providers.forge={name=%s,base_url=%s,env_key=%s,wire_api=%s,request_max_retries=%s,stream_max_retries=%s}",
			tomlString("forge"), tomlString(base), tomlString(keyVariable), tomlString("responses"), retries, retries),
		// Commands must not see the key.
		"shell_environment_policy={exclude=[" + tomlString(keyVariable) + "]}",
		// Commands must not read profiles of the machine.
		"allow_login_shell=false",
		// No web search, skills, update checks, analytics, or history across sessions.
		"web_search=" + tomlString("disabled"),
		"skills.bundled.enabled=false",
		"skills.include_instructions=false",
		"check_for_update_on_startup=false",
		"analytics.enabled=false",
		"history.persistence=" + tomlString("none"),
	}
	if t.Call.Uninstructed() {
		out = append(out, "project_doc_max_bytes=0") // of AGENTS.md and what stands in for it
	} else {
		out = append(out, "project_doc_fallback_filenames=["+tomlString("CLAUDE.md")+"]") // where there is no AGENTS.md
	}
	if len(t.Call.Tools) == 0 {
		out = append(out, "features.view_image=false", "tools.view_image=false") // the names in newer and older versions
	}
	if t.Call.Effort != "" {
		out = append(out, "model_reasoning_effort="+tomlString(string(t.Call.Effort)))
	}
	if t.Call.System != "" {
		out = append(out, "developer_instructions="+tomlString(t.Call.System))
	}
	return out
}

// tomlString returns s as a TOML string. Every JSON string is one.
func tomlString(s string) string {
	data, _ := json.Marshal(s) //nolint:errchkjson // a string always can
	return string(data)
}

// rolloutFiles returns the file of a session, relative to the state directory.
func rolloutFiles(state, native string) ([]string, error) {
	return cli.Glob(state, "sessions/*/*/*/rollout-*-"+native+".jsonl")
}
