package backends

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/claude"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/codex"
	"github.com/pfl-forge/pfl-forge/agent/exec"
	"github.com/pfl-forge/pfl-forge/agent/gemini"
	"github.com/pfl-forge/pfl-forge/agent/opencode"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/environ"
)

// Check is the result of looking for one back end on this machine.
type Check struct {
	Agent string
	// Version is that of the program, in its own words; empty for one that was
	// not asked.
	Version string
	// Problem says why the back end cannot be used, or will probably fail; nil
	// if nothing was found.
	Problem *agent.Failure
}

// CheckAll looks at every back end that the project's configuration names, in the
// process's own environment. dir is a private directory that it may use, root has the project's
// files.
func CheckAll(ctx context.Context, p *config.Project, dir, root string) []Check {
	var out []Check
	for _, name := range p.UsedAgents() {
		if name != config.AgentRecipe {
			out = append(out, check(ctx, name, p.Agents[name], dir, root))
		}
	}
	return out
}

// check asks one back end.
func check(ctx context.Context, name string, c config.AgentConfig, dir, root string) Check {
	out := Check{Agent: name}
	owner := process.NewOwner(dir)
	home := filepath.Join(dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		out.Problem = agent.AsFailure(err)
		return out
	}
	var err error
	var login []string
	switch name {
	case config.AgentClaude:
		out.Version, err = claude.New(claude.Options{Owner: owner}).Version(ctx, home)
	case config.AgentCodex:
		login = codex.About().Login
		out.Version, err = codex.New(cli.Options{Owner: owner}).Version(ctx, home)
	case config.AgentGemini:
		login = gemini.About().Login
		out.Version, err = gemini.New(cli.Options{Owner: owner}).Version(ctx, home)
	case config.AgentOpencode:
		login = opencode.About().Login
		out.Version, err = opencode.New(cli.Options{Owner: owner}).Version(ctx, home)
	default: // what its own program takes for a question after the version, nobody knows
		err = exec.New(name, c, cli.Options{Owner: owner}).CheckInstalled()
		if f := exec.CheckCommand(name, root, c.Command); f != nil {
			err = f
		}
	}
	out.Problem = agent.AsFailure(err)
	isSet := func(v string) bool { return environ.Get(v) != "" }
	if err == nil && len(login) > 0 && !slices.ContainsFunc(login, isSet) {
		out.Problem = agent.Fail(forge.FailAuth, "no login: set %s where pfl-forge runs", strings.Join(login, " or "))
	}
	if out.Problem == nil && name == config.AgentOpencode && !opencode.HasRipgrep() {
		out.Problem = agent.Fail(forge.FailMissingCLI, "it searches files with ripgrep, and there is no rg in PATH; it can read, and run commands")
	}
	return out
}
