package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
)

// protect installs the hook that is shipped at the origin: from now on main takes
// nothing but proven commits, by the keys of auth init.
func (c *cluster) protect() {
	c.t.Helper()
	shipped, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "deploy", "hooks", "pre-receive"))
	if err != nil {
		c.t.Fatal(err)
	}
	hook := filepath.Join(c.origin, "hooks", "pre-receive")
	write(c.t, hook, fmt.Sprintf("#!/bin/sh\nexport FORGE_TRUSTED_KEYS='%s' PFL_FORGE='%s'\nexec '%s'\n",
		filepath.Join(c.keys, "allowed_signers"), filepath.Join(bin, "pfl-forge"), shipped))
	if err := os.Chmod(hook, 0o700); err != nil {
		c.t.Fatal(err)
	}
}

// proven fails the test unless so many commits were merged at the origin, each with all
// of its proofs.
func (c *cluster) proven(commits int) {
	c.t.Helper()
	checkProven(c.t, c.origin, filepath.Join(c.keys, "allowed_signers"), commits)
}

// checkProven fails the test unless a repository's main has so many commits since its
// first one, each with all of its proofs. After a kill at any moment that has to hold.
func checkProven(t interface {
	Helper()
	Errorf(format string, args ...any)
}, dir, keys string, commits int,
) {
	t.Helper()
	root, err := exec.Command("git", "-C", dir, "rev-list", "--max-parents=0", "main").Output()
	if err != nil {
		t.Errorf("git rev-list: %v", err)
		return
	}
	cmd := exec.Command(filepath.Join(bin, "pfl-forge"), "-C", dir, "verify-commit", "--trusted-keys", keys, strings.TrimSpace(string(root))+"..main")
	out, err := cmd.CombinedOutput()
	if got := strings.Count(string(out), "\nok ") + strings.Count(string(out[:min(3, len(out))]), "ok "); err != nil || got != commits {
		t.Errorf("%d of %d commits are proven: %v\n%s", got, commits, err, out)
	}
}

// machineKeys returns the file of trusted keys of runs on this machine.
func machineKeys() string { return local.Keys(os.Getenv).SignersPath() }
