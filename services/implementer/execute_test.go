package implementer

import (
	"context"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/exec"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// goal is a command for an iteration, in a conversation of its own.
func goal(iteration int) forge.Command {
	c := command(forge.StepExecute, iteration)
	c.Session = agent.NewSessionID()
	c.Task.Criteria = []string{"new.txt is there"}
	input(&c).Goal = &forge.GoalContext{Iteration: iteration, Left: 10 - iteration, Criteria: c.Task.Criteria}
	return c
}

// after is the iteration that follows on one whose change was rebased and judged.
func after(rb *forge.Rebase, iteration int) forge.Command {
	c := goal(iteration)
	c.Task.Base, c.Task.Head = rb.Base, rb.Head
	c.Goal().Summaries = []forge.ExecutionSummary{{Iteration: iteration - 1, Approach: "write one file", Result: forge.ExecutionSuccess, Reason: "it is there"}}
	c.Goal().Judgment = &forge.Judgment{
		Head: rb.Head, Claims: []forge.Claim{{Number: 1, Text: c.Task.Criteria[0], Note: "one is not enough", Confidence: 1}}, NextAction: "write more.txt",
	}
	return c
}

// executed is the answer of an iteration.
func executed(output string) object {
	return object{
		"status": "success", "output": output, "artifacts": []string{"new.txt"},
		"semantic_metadata": object{"approach": "write it", "strategy_tags": []string{"plain"}},
	}
}

// worker is an agent that runs a script in the checkout and answers.
type worker struct {
	script string
	answer string
	tools  map[string]int
	err    error
	// prompt is that of the last call.
	prompt string
}

func (*worker) Name() string { return "claude" }

func (w *worker) Run(ctx context.Context, c agent.Call, _ func(agent.Event)) (agent.Outcome, error) {
	w.prompt = c.Prompt
	cmd := osexec.CommandContext(ctx, "sh", "-ec", w.script)
	cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), c.Env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return agent.Outcome{}, agent.Fail(forge.FailCrashed, "%v: %s", err, out)
	}
	return agent.Outcome{
		Session: c.Session.ID, Answer: []byte(w.answer), Tools: w.tools,
		Usage: forge.Usage{InputTokens: 100, OutputTokens: 20, CacheReadTokens: 1000, Calls: 1},
	}, w.err
}

const answer = `{"status": "failure", "output": "half of it", "artifacts": ["lie.txt"],
	"semantic_metadata": {"approach": "step by step", "strategy_tags": ["small-steps"], "discoveries": ["a.txt:1: a letter"]},
	"applied_knowledge": ["other/k1"], "observations": [{"content": "a trap"}]}`

func workerWorld(t *testing.T, a *worker) *world {
	t.Helper()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n"})
	return worldOn(t, r, repotest.Local(t, r.Dir, a), bustest.Start(t))
}

// What an iteration comes to is in two parts: what its agent says, and what was seen.
func TestExecution(t *testing.T) {
	t.Parallel()
	a := &worker{
		script: "echo b > new.txt; echo c >> a.txt; git add -A; git commit -qm one; echo d > left.txt; echo e >> a.txt",
		answer: answer, tools: map[string]int{"Write": 1, "Bash": 3, "StructuredOutput": 1},
	}
	w := workerWorld(t, a)
	r := w.implement(goal(1))
	if r.Failure() != nil || r.Usage.Calls != 1 || len(r.Observations) != 1 || r.Observations[0].Source != forge.StepExecute {
		t.Fatalf("got %+v, %+v", r, r.Failure())
	}
	im := forge.As[*forge.Implementation](r.Output)
	want := &forge.Execution{
		Status: forge.ExecutionFailure, Output: "half of it", Artifacts: []string{"lie.txt"}, Approach: "step by step",
		StrategyTags: []string{"small-steps"}, Discoveries: []string{"a.txt:1: a letter"}, Applied: []string{"other/k1"},
		Metadata: forge.SummaryMetadata{
			ToolsUsed: []string{"Bash", "Write"}, FilesModified: []string{"a.txt", "left.txt", "new.txt"}, TokensUsed: 120,
			StrategyTags: []string{"small-steps"},
		},
	}
	if diff := cmp.Diff(want, im.Execution); diff != "" {
		t.Error(diff)
	}
	if im.Commits != 1 || im.Summary != "half of it" || im.Leftover == "" || w.repo.Show(im.Leftover, "left.txt") != "d" {
		t.Errorf("got %+v", im)
	}
	if diff := cmp.Diff([]string{"a.txt", "new.txt"}, im.Files); diff != "" {
		t.Error(diff)
	}

	// The next one goes on from what was committed, and is asked only about what it did itself.
	a.script, a.tools = "git checkout -q . ; git clean -qfd; echo f > more.txt; git add -A; git commit -qm two", nil
	second := w.implemented(after(w.rebased(im), 2))
	if diff := cmp.Diff([]string{"more.txt"}, second.Execution.Metadata.FilesModified); diff != "" || second.Commits != 2 || second.Leftover != "" {
		t.Errorf("got %+v\n%s", second, diff)
	}
	if diff := cmp.Diff([]string{"a.txt", "more.txt", "new.txt"}, second.Files); diff != "" || len(second.Execution.Metadata.ToolsUsed) != 0 {
		t.Errorf("%+v\n%s", second.Execution, diff)
	}
}

// An iteration may change nothing, and another one may follow on it.
func TestExecutionWithoutCommits(t *testing.T) {
	t.Parallel()
	a := &worker{script: "true", answer: answer}
	w := workerWorld(t, a)
	first := w.implemented(goal(1))
	if first.Head != first.Base || first.Commits != 0 || len(first.Files) != 0 || first.Execution == nil || len(first.Execution.Metadata.FilesModified) != 0 {
		t.Errorf("got %+v", first)
	}
	a.script = "echo b > new.txt; git add -A; git commit -qm one"
	c := goal(2)
	c.Task.Base, c.Task.Head = first.Base, first.Head
	second := w.implemented(c)
	if second.Commits != 1 || second.Base != first.Base {
		t.Errorf("got %+v", second)
	}
	a.script = "true"
	third := w.implemented(after(&forge.Rebase{Base: second.Base, Head: second.Head}, 3))
	if third.Head != second.Head || third.Commits != 1 || len(third.Files) != 1 || len(third.Execution.Metadata.FilesModified) != 0 {
		t.Errorf("got %+v, %+v", third, third.Execution)
	}
}

// What a failed attempt of an iteration used is a part of what the iteration used, if it
// is continued.
func TestExecutionContinues(t *testing.T) {
	t.Parallel()
	a := &worker{
		script: "echo b > new.txt; git add -A; git commit -qm one", tools: map[string]int{"Write": 1},
		err: agent.Fail(forge.FailTimeout, "it took too long"),
	}
	w := workerWorld(t, a)
	fails(t, w.implement(goal(1)), forge.FailTimeout, "too long")
	a.script, a.answer, a.tools, a.err = "echo c > more.txt; git add -A; git commit -qm two", answer, map[string]int{"Bash": 1}, nil
	c := goal(1)
	c.Attempt.Number, input(&c).Continue = 2, true
	im := w.implemented(c)
	m := im.Execution.Metadata
	if diff := cmp.Diff([]string{"Bash", "Write"}, m.ToolsUsed); diff != "" || im.Commits != 2 || m.TokensUsed != 240 {
		t.Errorf("%+v\n%s", im, diff)
	}
	if diff := cmp.Diff([]string{"more.txt", "new.txt"}, m.FilesModified); diff != "" {
		t.Error(diff)
	}
}

func TestRecipesHaveNoGoals(t *testing.T) {
	t.Parallel()
	c := goal(1)
	c.Intent.Agent = config.AgentRecipe
	fails(t, newWorld(t).implement(c), forge.FailConfig, "a recipe cannot execute: set agent, or roles.implement,")
}

// The real CLI works on two iterations, each in a conversation of its own, of which the
// second one is told what came of the first.
func TestClaudeExecutes(t *testing.T) {
	t.Parallel()
	first := agenttest.Steps(writes("new.txt"), commits("one"), agenttest.Answer(executed("wrote it")))
	second := agenttest.Steps(writes("more.txt"), commits("two"), agenttest.Answer(executed("and more")))
	w, model := claudeWorld(t, func(r agenttest.Request) agenttest.Reply {
		if strings.Contains(string(r.Body), "write one file") {
			return second(r)
		}
		return first(r)
	})
	one := w.implemented(goal(1))
	m := one.Execution.Metadata
	if diff := cmp.Diff([]string{"Bash", "Write"}, m.ToolsUsed); diff != "" || m.TokensUsed == 0 || one.Execution.Approach != "write it" {
		t.Errorf("%+v\n%s", one.Execution, diff)
	}
	before := len(model.Requests("model"))
	rb := w.rebased(one)
	two := w.implemented(after(rb, 2))
	if two.Commits != 2 || two.Base != rb.Base || w.repo.Show(two.Head, "more.txt") != "more.txt" || w.repo.Git("rev-parse", two.Head+"^") != rb.Head {
		t.Errorf("got %+v", two)
	}
	if diff := cmp.Diff([]string{"more.txt"}, two.Execution.Metadata.FilesModified); diff != "" {
		t.Error(diff)
	}
	said := string(model.Requests("model")[before].Body)
	for _, want := range []string{"number 2. 8 more may follow", "Approach: write one file", "one is not enough", "write more.txt", "1. new.txt is there"} {
		if !strings.Contains(said, want) {
			t.Errorf("it is not told %q", want)
		}
	}
	if strings.Contains(said, "number 1.") || strings.Contains(said, "in a conversation that is lost") {
		t.Error("it goes on in the first conversation")
	}
}

// Another replica goes on with an iteration that was cut off.
func TestAnotherReplicaExecutes(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx, stop := context.WithCancel(t.Context())
	one, two, model := replicas(t, cutOff(stop, executed("finished")))
	c := goal(1)
	told := one.imp.implement(ctx, c, silent)
	fails(t, told, forge.FailKilled, "")
	c.Attempt.Claim = 2
	im := two.implemented(c)
	if im.Commits != 2 || im.Leftover != "" || im.Summary != "finished" || two.repo.Show(im.Head, "more.txt") != "more.txt" {
		t.Errorf("got %+v", im)
	}
	m := im.Execution.Metadata
	if diff := cmp.Diff([]string{"more.txt", "new.txt"}, m.FilesModified); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Bash", "Write"}, m.ToolsUsed); diff != "" || m.TokensUsed == 0 {
		t.Errorf("%+v\n%s", m, diff)
	}
	requests := model.Requests("model")
	last := requests[len(requests)-1]
	if body := string(last.Body); !strings.Contains(body, "Carry out an iteration of this goal") || !strings.Contains(body, "Go on with the task") {
		t.Errorf("the session did not go on: %s", last.LastUser)
	}
}

// A program of the project's own gets the goal's options as any agent does.
func TestOwnProgramExecutes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	script := `#!/bin/sh -e
cat > /dev/null
echo "$FORGE_ROLE $FORGE_MODEL $FORGE_TOOLS" > new.txt
tail -n 1 "$FORGE_SYSTEM" >> new.txt
grep -c strategy_tags "$FORGE_SCHEMA" >> new.txt
git add -A
git commit -qm one
echo '{"type": "tool", "tool": "sh", "text": "git commit"}'
printf '{"type": "result", "usage": {"input_tokens": 5, "output_tokens": 2}, "answer": '
echo '{"status": "success", "output": "done", "semantic_metadata": {"approach": "at once"}}}'
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	own := config.AgentConfig{Command: []string{program}}
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings + "agent: ours\nagents: {ours: {command: [" + program + "], models: {default: plain}}}\n"})
	ours := exec.New("ours", own, cli.Options{Owner: process.NewOwner(t.TempDir())})
	w := worldOn(t, r, repotest.Local(t, r.Dir, ours), bustest.Start(t))
	c := goal(1)
	c.Intent.Goal = &forge.GoalOptions{Model: "clever", Tools: []string{"Read", "Nothing"}, SystemPrompt: "Be brief."}
	im := w.implemented(c)
	want := forge.SummaryMetadata{ToolsUsed: []string{"sh"}, FilesModified: []string{"new.txt"}, TokensUsed: 7}
	if diff := cmp.Diff(want, im.Execution.Metadata); diff != "" {
		t.Error(diff)
	}
	if got := w.repo.Show(im.Head, "new.txt"); got != "execute clever Read\nBe brief.\n1" {
		t.Errorf("it was called with %q", got)
	}
}
