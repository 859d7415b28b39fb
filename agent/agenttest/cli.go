package agenttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// CLI returns the path of a real agent CLI: that in the variable PFL_FORGE_<NAME>, or
// the one that npm installed in the repository's .tools, or the one in PATH. Without
// one the test is skipped, or fails if CI is true.
func CLI(t testing.TB, name string) string {
	t.Helper()
	variable := "PFL_FORGE_" + strings.ToUpper(name)
	if path := os.Getenv(variable); path != "" {
		return path
	}
	// Tests run in their package's folder, below the repository's root.
	for dir, err := os.Getwd(); err == nil; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, ".tools", "node_modules", ".bin", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("no %s: make agent-cli, or set %s", name, variable)
	}
	t.Skipf("no %s: make agent-cli, or set %s", name, variable)
	return ""
}

// ClaudeCLI returns the path of the real Claude Code CLI.
func ClaudeCLI(t testing.TB) string {
	t.Helper()
	return CLI(t, "claude")
}
