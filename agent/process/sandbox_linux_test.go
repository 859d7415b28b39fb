package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// confined returns a shell that sees the system, its directory and its home alone.
func confined(t *testing.T, script string) Command {
	t.Helper()
	c := shell(t, script)
	home := ""
	for _, kv := range c.Env {
		if v, ok := strings.CutPrefix(kv, "HOME="); ok {
			home = v
		}
	}
	spec := sandbox.Spec{Mounts: sandbox.System(os.Getenv("PATH"), "/root")}.With(
		append(sandbox.Path(c.Dir, sandbox.Writable), sandbox.Path(filepath.Dir(home), sandbox.Writable)...)...)
	c.Sandbox = &spec
	return c
}

// offered reports whether the machine lets us have sandboxes. Where it does not, a
// command that asks for one must not be run at all.
func offered(t *testing.T) bool {
	t.Helper()
	err := Probe(t.Context(), sandbox.NetworkFull)
	if err == nil {
		return true
	}
	t.Logf("there is no sandbox here: %v", err)
	c := confined(t, "touch ran")
	if _, runErr := Run(t.Context(), c); !errors.Is(err, ErrSandbox) || !errors.Is(runErr, ErrSandbox) {
		t.Errorf("probe: %v; run: %v", err, runErr)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "ran")); err == nil {
		t.Error("a command runs without the sandbox that it should have")
	}
	return false
}
