package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// Probe makes a sandbox with that network and runs a command in it. It returns nil if
// that works on this machine; otherwise the error says why not.
func Probe(ctx context.Context, network sandbox.Network) error {
	dir, err := os.MkdirTemp("", "pfl-forge-sandbox-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSandbox, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	mounts := append(sandbox.System("", dir), sandbox.Path(dir, sandbox.Writable)...)
	report, err := Run(ctx, Command{
		Path: "/bin/sh", Args: []string{"-c", ": > works && test -e /proc/self"}, Dir: dir, Env: Environment(dir),
		Limits: Limits{Wall: 20 * time.Second}, MergeStderr: true,
		Sandbox: &sandbox.Spec{Mounts: mounts, Network: network},
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "works")); err != nil || report.ExitCode != 0 {
		return fmt.Errorf("%w: a command in it ended with status %d: %s", ErrSandbox, report.ExitCode, report.Output)
	}
	return nil
}
