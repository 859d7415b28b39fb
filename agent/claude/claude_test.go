package claude_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/claude"
)

func TestAnalyze(t *testing.T) {
	b := newBench(t, agent.RoleAnalyze, agenttest.Steps(
		func(r agenttest.Request) agenttest.Reply {
			return agenttest.Reply{Text: "I look \x1b[31maround.", Tool: "Read", Input: readGreeting(r.Dir)}
		},
		agenttest.Answer(object{
			"type": "feature", "risk": "low",
			"tasks": []object{{
				"name": "greet", "title": "Greet", "plan": "Say hi", "relevant_files": []string{"greeting.txt"}, "complexity": "low",
			}},
			"observations": []object{{"content": "no tests", "evidence": []object{{"type": "file", "ref": "greeting.txt"}}}},
		}),
	))
	out := b.mustRun()

	got, obs, err := agent.ParseAnalysis(out.Answer)
	want := forge.Analysis{Type: "feature", Risk: forge.RiskLow, Tasks: []forge.TaskPlan{{
		Name: "greet", Title: "Greet", Plan: "Say hi", RelevantFiles: []string{"greeting.txt"}, Complexity: forge.ComplexityLow,
	}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if len(obs) != 1 || obs[0].Source != forge.StepAnalyze || obs[0].Evidence[0].Ref != "greeting.txt" {
		t.Errorf("observations %+v", obs)
	}
	if out.Session != b.call.Session.ID || claude.SessionFile(b.call.StateDir, out.Session) == "" {
		t.Errorf("session %q, want %q with its file", out.Session, b.call.Session.ID)
	}
	if b.mustCost(out); out.Usage.Turns == 0 || out.Usage.Calls != 1 {
		t.Errorf("usage %+v", out.Usage)
	}
	if diff := cmp.Diff(map[string]int{"Read": 1, "StructuredOutput": 1}, out.Tools); diff != "" {
		t.Error(diff)
	}

	requests := b.model.Requests("main")
	first := requests[0]
	slices.Sort(first.Tools)
	if diff := cmp.Diff([]string{"Glob", "Grep", "Read", "StructuredOutput"}, first.Tools); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(first.System, "You are the analyze agent.") || !strings.Contains(string(first.Body), "REPOSITORY-CONVENTIONS") {
		t.Error("the system prompt or CLAUDE.md is missing in the request")
	}
	if !strings.Contains(first.LastUser, "Change the greeting.") || first.Header.Get("X-Api-Key") != "test-key" {
		t.Errorf("prompt %q, key %q", first.LastUser, first.Header.Get("X-Api-Key"))
	}
	if last := requests[len(requests)-1]; !strings.Contains(last.LastResult, "hello") {
		t.Errorf("Read gave %q", last.LastResult)
	}

	for _, k := range []agent.EventKind{agent.EventStarted, agent.EventText, agent.EventTool, agent.EventUsage} {
		if !slices.Contains(b.kinds(), k) {
			t.Errorf("no event of kind %s", k)
		}
	}
	for _, e := range b.seen {
		if e.Kind == agent.EventText && e.Text != "I look around." {
			t.Errorf("text event %q", e.Text)
		}
	}
}

func implementation(message string) agenttest.Scenario {
	return agenttest.Steps(
		agenttest.UseIn("Read", readGreeting),
		agenttest.UseIn("Edit", func(dir string) any {
			return object{"file_path": filepath.Join(dir, "greeting.txt"), "old_string": "hello", "new_string": "hello, world"}
		}),
		agenttest.Use("Bash", object{"command": "git add -A && git commit -q -m '" + message + "'"}),
		agenttest.Answer(object{"summary": "greets the world"}),
		agenttest.Use("Bash", object{"command": "echo more >> greeting.txt && git commit -q -a -m 'after feedback'"}),
		agenttest.Answer(object{"summary": "says more"}),
	)
}

func TestImplementCommitsAndResumes(t *testing.T) {
	b := newBench(t, agent.RoleImplement, implementation("greet the world"))
	out := b.mustRun()
	if summary, _, err := agent.ParseImplementation(out.Answer); summary != "greets the world" || err != nil {
		t.Errorf("summary %q, %v", summary, err)
	}
	if diff := cmp.Diff([]string{"greeting.txt"}, out.Files); diff != "" {
		t.Error(diff)
	}
	if got := git(t, b.call.Dir, "log", "-1", "--format=%an %s%n%b"); got != "a greet the world" {
		t.Errorf("commit is %q", got)
	}

	b.call.Session = agent.Session{ID: out.Session, Resume: true}
	b.call.Prompt = "/the reviewer wants more"
	b.call.ScratchDir = t.TempDir() // every call has its own
	again := b.mustRun()
	if summary, _, err := agent.ParseImplementation(again.Answer); summary != "says more" || err != nil {
		t.Errorf("summary %q, %v", summary, err)
	}
	if again.Session != out.Session || git(t, b.call.Dir, "rev-list", "--count", "HEAD") != "3" {
		t.Errorf("session %s went on as %s", out.Session, again.Session)
	}
	requests := b.model.Requests("main")
	last := requests[len(requests)-1]
	if !strings.Contains(last.LastUser, "/the reviewer wants more") || !strings.Contains(string(last.Body), "Change the greeting.") {
		t.Errorf("the session was not resumed with the feedback: %q", last.LastUser)
	}
	if !strings.Contains(last.System, "You are the implement agent.") {
		t.Error("the system prompt is missing after resume")
	}
}

func TestReview(t *testing.T) {
	b := newBench(t, agent.RoleReview, agenttest.Steps(
		agenttest.Answer(object{"verdict": "rejected", "issues": []string{"too polite"}, "suggestions": []string{"be brief"}}),
	))
	got, _, err := agent.ParseReview(b.mustRun().Answer)
	want := forge.Review{Verdict: forge.VerdictRejected, Issues: []string{"too polite"}, Suggestions: []string{"be brief"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestBashSeesNoSecretsAndLeavesNothing looks at the environment of the agent's
// own commands, and lets one of them start a daemon.
func TestBashSeesNoSecretsAndLeavesNothing(t *testing.T) {
	b := newBench(t, agent.RoleImplement, agenttest.Steps(
		agenttest.Use("Bash", object{"command": "env > env.txt; setsid sh -c 'echo $$ > daemon.pid; exec sleep 600' >/dev/null 2>&1 & " +
			"while [ ! -s daemon.pid ]; do sleep 0.01; done"}),
		agenttest.Answer(object{"summary": "done"}),
	))
	b.mustRun()
	env, err := os.ReadFile(filepath.Join(b.call.Dir, "env.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(env), "HOME="+b.call.ScratchDir) || strings.Contains(string(env), "CANARY") {
		t.Errorf("HOME is not private, or the service's environment is there:\n%s", env)
	}
	if !strings.Contains(string(env), "BASH_MAX_TIMEOUT_MS=36000\n") {
		t.Errorf("a command may last longer than the call may be idle:\n%s", env)
	}
	pid, err := os.ReadFile(filepath.Join(b.call.Dir, "daemon.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if cwd, err := os.Readlink("/proc/" + strings.TrimSpace(string(pid)) + "/cwd"); err == nil && cwd == b.call.Dir {
		t.Errorf("the daemon %s is left", pid)
	}
}
