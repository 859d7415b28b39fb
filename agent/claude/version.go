package claude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Oldest is the oldest version of the CLI that was seen to do all that calls need.
// Version 2.1.20 does not: it gives a session another id when it goes on from a file.
const Oldest = "2.1.90"

const install = "npm install -g @anthropic-ai/claude-code@latest"

// stamp is a file as it was when its version was asked for.
type fileStamp struct {
	changed time.Time
	size    int64
}

// Version returns what the CLI says of its version, or a *Failure that says why it
// cannot be used. home is the directory to ask it in, and its HOME.
func (a *Agent) Version(ctx context.Context, home string) (string, error) {
	path, err := a.path()
	if err != nil {
		return "", err
	}
	return a.queryVersion(ctx, path, home)
}

// path returns where the CLI is.
func (a *Agent) path() (string, error) {
	path, err := exec.LookPath(a.opts.Path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return "", agent.Fail(forge.FailMissingCLI, "%v; install it with %s, or choose another agent in %s", err, install, config.FileName)
	}
	if err != nil {
		return "", agent.AsFailure(err)
	}
	return path, nil
}

// checkedPath returns the path of the CLI, or why it cannot be used. A file is asked for its
// version once, as long as it does not change.
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
	defer a.mu.Unlock() // one asks, the others wait for its answer
	if a.versionChecked[path] == now {
		return path, nil
	}
	if _, err := a.queryVersion(ctx, path, home); err != nil {
		return "", err
	}
	a.versionChecked[path] = now
	return path, nil
}

// queryVersion has the CLI say its version.
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
	versionShape = regexp.MustCompile(`^(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b`)
	oldest, _    = parseVersion(Oldest)
)

// parseVersion takes "2.1.197 (Claude Code)" apart.
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
