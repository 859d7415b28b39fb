package e2e

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

type object = map[string]any

// claudeModel plays the model for every role: it plans one task, writes and
// commits a file, is rejected once, mends it in the same session, and is
// approved.
func claudeModel() agenttest.Scenario {
	var mended atomic.Bool
	return func(r agenttest.Request) agenttest.Reply { return claudeReply(r, &mended) }
}

func claudeReply(r agenttest.Request, mended *atomic.Bool) agenttest.Reply {
	plan := agenttest.Answer(object{
		"type": "feature", "risk": "low",
		"tasks": []object{{"name": "greet", "title": "Greet", "plan": "Write greeting.txt.", "relevant_files": []string{}, "complexity": "low"}},
	})
	write := func(content string) agenttest.Step {
		return agenttest.UseIn("Write", func(dir string) any {
			return object{"file_path": filepath.Join(dir, "greeting.txt"), "content": content}
		})
	}
	commit := agenttest.Use("Bash", object{"command": "git add -A && git commit -q -m 'Greet'"})
	done := agenttest.Answer(object{"summary": "wrote the greeting"})
	switch {
	case strings.Contains(r.System, "You plan changes"):
		return plan(r)
	case strings.Contains(r.System, "You carry out one task"):
		mended.Store(r.ToolResults >= 5)
		return agenttest.Steps(write("hello"), commit, done, write("hello\n"), commit, done)(r)
	case !mended.Load():
		return agenttest.Answer(object{"verdict": "rejected", "issues": []string{"greeting.txt: the last line has no end"}, "suggestions": []string{}})(r)
	default:
		return agenttest.Answer(object{"verdict": "approved", "issues": []string{}, "suggestions": []string{}})(r)
	}
}

// TestClaude drives the real Claude Code CLI, on a scripted model, through
// analyze, implement, a rejecting review, rework in the same session, review and
// integrate.
func TestClaude(t *testing.T) {
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	t.Setenv("PATH", filepath.Dir(cli)+":"+getenv(t, "PATH"))
	t.Setenv("ANTHROPIC_BASE_URL", model.Script("claude", claudeModel()))
	t.Setenv("ANTHROPIC_API_KEY", "no-key")
	r := newRepo(t, map[string]string{"pfl-forge.yaml": "agent: claude\nverify:\n  - test ! -e broken\n"})
	r.draft("greet", "type: feature")
	r.must(0, "run")
	if got := r.read("greeting.txt"); got != "hello\n" {
		t.Errorf("greeting.txt is %q", got)
	}
	show := r.must(0, "show", "greet", "--output", "json").stdout
	for _, want := range []string{"rejected", "the last line has no end", "approved"} {
		if !strings.Contains(show, want) {
			t.Errorf("show does not tell of %q:\n%s", want, show)
		}
	}
	history := r.read(".forge/knowledge/history/greet-1.yaml")
	if !strings.Contains(history, "rule: rework") || strings.Count(history, "session_id: ") < 5 {
		t.Errorf("the history is\n%s", history)
	}
	r.tidy()
}
