// Package exec makes a back end of any program that reads a prompt from stdin and
// prints JSON lines on stdout. docs/guide-agents.md has the contract: the FORGE_
// variables that the program gets, and the lines that it prints, of which the last is
// the result.
//
// The program and its arguments come from the project's configuration, never from an
// intent.
package exec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/config"
)

// New returns the back end of that name in pfl-forge.yaml. Options.Path, if it is set,
// replaces the configured program.
func New(name string, c config.AgentConfig, opts cli.Options) *cli.Program {
	about := cli.About{Backend: name, Install: "what " + config.FileName + " calls it by"}
	if len(c.Command) > 0 {
		about.Command = c.Command[0]
	}
	p := &cli.Program{
		About: about, Options: opts, EnforcesReadOnly: c.ReadOnly, ReportsCost: true,
		Command:     func(t *cli.Turn) (cli.Invocation, error) { return command(t, c.Command) },
		Reader:      func(t *cli.Turn, log *cli.Recorder) cli.Reader { return &reader{log: log, session: t.Call.Session.ID} },
		StoredFiles: sessionFiles,
	}
	p.CheckoutState = func(ctx context.Context, t *cli.Turn) (string, error) { return checkoutState(ctx, t, opts.Owner) }
	return p
}

// CredentialPrefix begins the names of the variables that are for programs of projects.
const CredentialPrefix = "FORGE_AGENT_"

// Credentials returns an agent.Connect that gives the named back end its credentials:
// FORGE_AGENT_<NAME>_KEY=x of the service is KEY=x for its program. So an operator, not the
// repository, decides which secrets a program gets. prefixed returns the variables whose
// names begin with a prefix, without it; it is called for each call.
func Credentials(name string, prefixed func(prefix string) ([]string, error)) agent.Connect {
	prefix := CredentialPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_"
	return func(context.Context, agent.Call) (agent.Connection, error) {
		env, err := prefixed(prefix)
		return agent.Connection{Env: env}, err
	}
}

// CheckCommand returns why the command of a back end cannot be called in a checkout, nil if it
// can: one of its arguments is a file there, which an agent could change.
func CheckCommand(name, checkout string, words []string) *agent.Failure {
	for _, w := range words[min(1, len(words)):] {
		if info, err := os.Stat(filepath.Join(checkout, w)); err == nil && !filepath.IsAbs(w) && info.Mode().IsRegular() {
			return agent.Fail(forge.FailConfig,
				"the command of %s names %s, which is in the checkout: whoever works there could change the agent; keep it elsewhere, and give an absolute path",
				name, w)
		}
	}
	return nil
}

// command returns how the program is called. The arguments that are files are added to the
// sandbox.
func command(t *cli.Turn, words []string) (cli.Invocation, error) {
	if f := CheckCommand(filepath.Base(t.StateDir), t.Call.Dir, words); f != nil {
		return cli.Invocation{}, f
	}
	// In a sandbox only the executable itself is visible by default; an interpreter's
	// script is not.
	if t.Call.Sandbox != nil {
		spec := *t.Call.Sandbox
		for _, w := range words {
			spec = spec.With(sandbox.Path(w, sandbox.ReadOnly)...)
		}
		t.Call.Sandbox = &spec
	}
	schema, system := filepath.Join(t.Home, "schema.json"), filepath.Join(t.Home, "system.md")
	if err := process.Fill(t.Home, map[string]string{"schema.json": string(t.Call.Schema), "system.md": t.Call.System}); err != nil {
		return cli.Invocation{}, agent.Fail(forge.FailRepository, "%v", err)
	}
	env := []string{
		"FORGE_ROLE=" + string(t.Call.Role),
		"FORGE_MODEL=" + t.Call.Model,
		"FORGE_SYSTEM=" + system,
		"FORGE_SESSION=" + t.Call.Session.ID,
		"FORGE_STATE_DIR=" + t.StateDir,
		"FORGE_TOOLS=" + strings.Join(t.Call.Tools, ","),
	}
	if len(t.Call.Schema) > 0 {
		env = append(env, "FORGE_SCHEMA="+schema)
	}
	if t.Call.ReadOnly {
		env = append(env, "FORGE_READ_ONLY=1")
	}
	if t.Call.Uninstructed() {
		env = append(env, "FORGE_UNINSTRUCTED=1")
	}
	if t.Native != "" {
		env = append(env, "FORGE_RESUME=1")
	}
	if t.Call.Effort != "" {
		env = append(env, "FORGE_EFFORT="+string(t.Call.Effort))
	}
	if n := t.Call.Limits.MaxTurns; n > 0 {
		env = append(env, fmt.Sprint("FORGE_MAX_TURNS=", n))
	}
	if usd := t.Call.Limits.BudgetUSD; usd > 0 {
		env = append(env, fmt.Sprintf("FORGE_BUDGET_USD=%.4f", usd))
	}
	return cli.Invocation{Args: words[min(1, len(words)):], Env: env, Stdin: []byte(t.Call.Prompt)}, nil
}

// sessionFiles returns the files that the program stored for a session: their names
// begin with its id.
func sessionFiles(state, native string) ([]string, error) { return cli.Glob(state, native+"*") }

// checkoutState returns the commit, status and differences of the checkout, to notice a
// program that was to change nothing and did.
func checkoutState(ctx context.Context, t *cli.Turn, owner process.Owner) (string, error) {
	report, err := process.Run(ctx, process.Command{
		Path: "/bin/sh", Args: []string{"-c", "exec 2>/dev/null; git rev-parse HEAD; git status --porcelain --ignored; git diff HEAD"}, Dir: t.Call.Dir,
		Env: process.Environment(t.Home), Owner: owner, Limits: process.Limits{Wall: time.Minute},
	})
	return string(report.Output), err
}
