package claude_test

import (
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

// Bash may be given for some commands only.
func TestSomeCommands(t *testing.T) {
	b := newBench(t, agent.RoleImplement, agenttest.Steps(
		agenttest.Use("Bash", object{"command": "sh -c 'echo x > denied.txt'"}),
		agenttest.Use("Bash", object{"command": "git branch granted"}),
		agenttest.Answer(object{"summary": "tried"}),
	))
	b.call.Tools = []string{"Read", "Bash(git branch:*)", "Bash(git log:*)"}
	b.mustRun()
	if got := git(t, b.call.Dir, "for-each-ref", "--format=%(refname:short)", "refs/heads/granted"); !strings.Contains(got, "granted") {
		t.Error("what is allowed was not done")
	}
	if got := git(t, b.call.Dir, "status", "--porcelain"); strings.Contains(got, "denied") {
		t.Errorf("what is not allowed was done: %s", got)
	}
	tools := b.model.Requests("main")[0].Tools
	slices.Sort(tools)
	if diff := cmp.Diff([]string{"Bash", "Read", "StructuredOutput"}, tools); diff != "" {
		t.Error(diff)
	}
}
