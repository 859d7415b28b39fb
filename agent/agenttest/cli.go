package agenttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// ClaudeCLI returns the path of the real Claude Code CLI: PFL_FORGE_CLAUDE, or
// claude in PATH, or the one that npm installed in the repository's .tools.
// Without one the test is skipped, but fails where CI is true.
func ClaudeCLI(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("PFL_FORGE_CLAUDE"); path != "" {
		return path
	}
	if path, err := exec.LookPath("claude"); err == nil {
		return path
	}
	for dir, err := os.Getwd(); err == nil; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, ".tools", "node_modules", ".bin", "claude")
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	const how = "no Claude Code CLI: npm install --prefix .tools @anthropic-ai/claude-code@2.1.197, or set PFL_FORGE_CLAUDE"
	if os.Getenv("CI") == "true" {
		t.Fatal(how)
	}
	t.Skip(how)
	return ""
}
