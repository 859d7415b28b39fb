package claude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Oldest is the oldest version of the CLI that is known to do all that calls need.
// Version 2.1.20, for example, gives a session another id when it is resumed from a
// file.
const Oldest = "2.1.90"

// install is the command that error messages tell a person to run.
const install = "npm install -g @anthropic-ai/claude-code@latest"

// fileStamp tells whether an executable changed since its version was checked.
type fileStamp struct {
	changed time.Time
	size    int64
}

// Version returns the version that the CLI reports, or a *Failure that says why it
// cannot be used. home is used as directory and HOME.
func (a *Agent) Version(ctx context.Context, home string) (string, error) {
	path, err := a.path()
	if err != nil {
		return "", err
	}
	return a.queryVersion(ctx, path, home)
}

// path returns the executable's absolute path. Its error says how to install it.
func (a *Agent) path() (string, error) {
	path, err := exec.LookPath(a.opts.Path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", agent.Fail(forge.FailMissingCLI, "%s is not in PATH; install it with %s, or choose another agent in %s", a.opts.Path, install, config.FileName)
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return "", agent.Fail(forge.FailMissingCLI, "%v; install it with %s, or choose another agent in %s", err, install, config.FileName)
	}
	if err != nil {
		return "", agent.AsFailure(err)
	}
	return path, nil
}

// checkedPath returns the path of an executable whose version is recent enough. It runs
// the CLI once per executable, and again only if the file changes.
func (a *Agent) checkedPath(ctx context.Context, home string) (string, error) {
	path, err := a.path()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", agent.Fail(forge.FailMissingCLI, "%v", err)
	}
	now := fileStamp{info.ModTime(), info.Size()}
	a.mu.Lock()
	defer a.mu.Unlock() // held while the CLI runs, so that it runs once
	if a.versionChecked[path] == now {
		return path, nil
	}
	if _, err := a.queryVersion(ctx, path, home); err != nil {
		return "", err
	}
	a.versionChecked[path] = now
	return path, nil
}

// queryVersion runs the CLI with --version and checks the reported version.
func (a *Agent) queryVersion(ctx context.Context, path, home string) (string, error) {
	report, err := process.Run(ctx, process.Command{
		Path: path, Args: []string{"--version"}, Dir: home, Env: process.Environment(home), Owner: a.opts.Owner,
		Limits: process.Limits{Wall: time.Minute, OutputBytes: 1 << 20},
	})
	if err != nil {
		return "", agent.AsFailure(fmt.Errorf("asked for its version: %w", err))
	}
	said := term.Short(string(report.Output), maxSubject)
	version, ok := parseVersion(said)
	switch {
	case !ok:
		return "", agent.Fail(forge.FailMissingCLI,
			"%s is not Claude Code, or is broken: asked for its version, it ended with status %d and said %q; install it with %s",
			path, report.ExitCode, said, install)
	case slices.Compare(version, oldest) < 0:
		return "", agent.Fail(forge.FailCLITooOld, "%s is version %s of Claude Code, and at least %s is needed; update it with %s", path, said, Oldest, install)
	}
	return said, nil
}

var (
	versionShape = pattern.New(`^(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b`)
	oldest, _    = parseVersion(Oldest)
)

// parseVersion returns the numbers of a text such as "2.1.330 (Claude Code)".
func parseVersion(s string) ([]int, bool) {
	m := versionShape.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return nil, false
	}
	var out []int
	for _, digits := range m[1:] {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}
