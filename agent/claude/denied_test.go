package claude_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

// TestDenialsAreReported has an agent write where the CLI asks a person first, which is
// nobody here, and then in the way that its feedback names.
func TestDenialsAreReported(t *testing.T) {
	skill := func(dir string) any {
		return object{"file_path": dir + "/.claude/skills/x/SKILL.md", "content": "x"}
	}
	b := newBench(t, agent.RoleImplement, agenttest.Steps(
		agenttest.UseIn("Write", skill),
		agenttest.UseIn("Write", skill),
		agenttest.UseIn("Write", func(string) any { return object{"file_path": "/outside/x", "content": "x"} }),
		agenttest.UseIn("Write", func(dir string) any { return object{"file_path": dir + "/SKILL.md", "content": "x"} }),
		agenttest.Use("Bash", object{"command": "install -D SKILL.md .claude/skills/x/SKILL.md"}),
		agenttest.Use("Bash", object{"command": "rm SKILL.md"}),
		agenttest.Answer(object{"summary": "done"}),
	))
	out := b.mustRun()
	if diff := cmp.Diff([]string{"Write .claude/skills/x/SKILL.md", "Write /outside/x"}, out.Denied); diff != "" {
		t.Error(diff)
	}
	if got := git(t, b.call.Dir, "status", "--porcelain", "-uall"); got != "?? .claude/skills/x/SKILL.md" {
		t.Errorf("the status is %q", got)
	}
}
