package config

import (
	"slices"
	"strings"
)

// instructionFiles and instructionDirs are the names, in any directory, by which
// repositories instruct coding agents: those that the back ends read by themselves, and
// those of other tools, because people let several work on one repository. They are
// protected paths, and no file of these names is shown to a model that judges a change.
var (
	instructionFiles = []string{
		"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", "GEMINI.md", "CONTEXT.md", "copilot-instructions.md",
		".cursorrules", ".cursorignore", ".cursorindexingignore", ".windsurfrules", ".clinerules", "opencode.json", "opencode.jsonc",
		"AGENT.md", "QWEN.md", "CRUSH.md", "WARP.md", ".goosehints", ".roomodes",
	}
	instructionDirs = []string{
		".agents", ".claude", ".codex", ".gemini", ".opencode", ".cursor", ".windsurf", ".clinerules", ".roo", ".kiro", ".junie", ".amazonq", ".continue",
	}
)

// Instructs reports whether a file instructs agents, by the names in its path. Letter case
// is ignored, because some file systems do.
func Instructs(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		same := func(s string) bool { return strings.EqualFold(s, name) }
		if slices.ContainsFunc(instructionFiles, same) || slices.ContainsFunc(instructionDirs, same) {
			return true
		}
	}
	return false
}

// InstructsBelow reports whether everything in a directory of this name instructs agents.
func InstructsBelow(name string) bool {
	return slices.ContainsFunc(instructionDirs, func(s string) bool { return strings.EqualFold(s, name) })
}
