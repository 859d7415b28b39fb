package reflector_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// iterated is a command that comes after an iteration, which says that it succeeded.
func iterated() forge.Command {
	c := command(forge.StepSummarize)
	c.Attempt.Task = "tidy-001"
	c.Input = &forge.IterationInput{Goal: forge.GoalContext{
		Iteration: 3, Criteria: []string{"a.txt is short"},
		Summaries: []forge.ExecutionSummary{{Iteration: 2, Approach: "Another one.", Result: forge.ExecutionFailure}},
		Knowledge: []forge.Knowledge{{Content: "Known before."}},
		Execution: &forge.Execution{
			Status: forge.ExecutionSuccess, Output: "I made it short.", Approach: "Cut it.", StrategyTags: []string{"cut"}, Artifacts: []string{"a.txt"},
			Metadata: forge.SummaryMetadata{ToolsUsed: []string{"Edit"}, FilesModified: []string{"a.txt"}, TokensUsed: 7},
		},
	}}
	return c
}

// changed makes a branch on which an iteration changed something.
func changed(r gittest.Repo, c *forge.Command) {
	r.Git("checkout", "-q", "-b", "change")
	r.Commit("shorter", map[string]string{"a.txt": "a", "new.txt": "new\n"})
	r.Git("checkout", "-q", "main")
	c.Task.Base, c.Task.Head = string(r.Head("main")), string(r.Head("change"))
}

const summary = `{"approach": "Cut a.txt.", "result": "success", "reason": "It is short.", "artifacts": ["a.txt"],
	"next": {"suggested_action": "Test it.", "pending_items": ["a test"]}, "knowledge": [
		{"type": "discovery", "category": "files", "content": "Files end without a newline.", "example_file": "new.txt:1", "confidence": "medium"},
		{"type": "lesson", "category": "files", "content": "known before. ", "confidence": "high"},
		{"type": "constraint", "category": "files", "content": "No tabs.", "example_file": "gone.txt", "confidence": "low"}]}`

func TestSummarize(t *testing.T) {
	p := &parrot{answer: summary}
	r, ref := world(t, map[string]string{"a.txt": "a long one\n", "pfl-forge.yaml": "timeouts: {review: 3m}\n"}, p)
	c := iterated()
	changed(r, &c)
	forge.As[*forge.IterationInput](c.Input).Verify = &forge.VerifyReport{Command: "make test", Output: "FAIL"}
	got := do(t, ref, c)
	want := &forge.Summarization{
		Summary: forge.ExecutionSummary{
			Iteration: 3, Approach: "Cut a.txt.", Result: forge.ExecutionFailure, Reason: "It is short.", Artifacts: []string{"a.txt"},
			Metadata: forge.SummaryMetadata{ToolsUsed: []string{"Edit"}, FilesModified: []string{"a.txt"}, TokensUsed: 7, StrategyTags: []string{"cut"}},
			Next:     &forge.NextAction{SuggestedAction: "Test it.", PendingItems: []string{"a test"}},
		},
		Knowledge: []forge.Knowledge{
			{
				Type: forge.KnowledgeDiscovery, Category: "files", Content: "Files end without a newline.", ExampleFile: "new.txt:1",
				SourceTask: "Tidy up", Confidence: forge.ConfidenceMedium,
			},
			{Type: forge.KnowledgeConstraint, Category: "files", Content: "No tabs.", SourceTask: "Tidy up", Confidence: forge.ConfidenceLow},
		},
	}
	times := cmp.Options{cmpopts.IgnoreFields(forge.Knowledge{}, "CreatedAt"), cmpopts.IgnoreFields(forge.ExecutionSummary{}, "At")}
	out := forge.As[*forge.Summarization](got.Output)
	if diff := cmp.Diff(want, out, times); diff != "" || got.Failure() != nil || got.Agent != "claude" {
		t.Errorf("%+v\n%s", got, diff)
	}
	if out.Summary.At.IsZero() || out.Knowledge[0].CreatedAt.IsZero() {
		t.Error("nobody knows when")
	}
	call := p.calls[0]
	if call.Role != agent.RoleSummarize || !call.ReadOnly || len(call.Tools) > 0 || call.Limits.Wall != 3*time.Minute || call.Session.ID != c.Session ||
		strings.HasPrefix(call.Dir, r.Dir) {
		t.Errorf("got %+v", call)
	}
	for _, told := range []string{"Sum up iteration 3.", "a.txt is short", "Another one.", `"new.txt"`, `this command failed: "make test"`, "I made it short."} {
		if !strings.Contains(call.Prompt, told) {
			t.Errorf("%q was not told:\n%s", told, call.Prompt)
		}
	}
}

// Of what passed, or was not verified, the agent's word is as good as any.
func TestSummarizeWithoutAChange(t *testing.T) {
	p := &parrot{answer: summary}
	_, ref := world(t, map[string]string{"gone.txt": "here\n"}, p)
	got := do(t, ref, iterated())
	out := forge.As[*forge.Summarization](got.Output)
	if got.Failure() != nil || out.Summary.Result != forge.ExecutionSuccess || out.Knowledge[1].ExampleFile != "gone.txt" {
		t.Fatalf("%+v, %+v", got.Failure(), out)
	}
	if told := p.calls[0].Prompt; !strings.Contains(told, "No file differs from the base branch.") || !strings.Contains(told, "No command of the project ran") {
		t.Errorf("told %s", told)
	}
}

// Where there is no model to ask, the report stands for itself.
func TestSummarizeWithoutAModel(t *testing.T) {
	_, ref := world(t, map[string]string{"pfl-forge.yaml": "agent: recipe\n"})
	c := iterated()
	forge.As[*forge.IterationInput](c.Input).Verify = &forge.VerifyReport{Command: "make test"}
	got := do(t, ref, c)
	if got.Failure() != nil || got.Agent != "" {
		t.Fatalf("%+v", got)
	}
	s := forge.As[*forge.Summarization](got.Output).Summary
	if s.Iteration != 3 || s.Approach != "Cut it." || s.Reason != "I made it short." || s.Result != forge.ExecutionFailure || s.Metadata.TokensUsed != 7 {
		t.Errorf("%+v", s)
	}
}

func TestSummarizeFailures(t *testing.T) {
	p := &parrot{answer: `{"approach": "a", "result": "done", "reason": "r"}`}
	_, ref := world(t, map[string]string{"a.txt": "a\n"}, p)
	fails := func(c forge.Command, reason forge.FailureReason, message string) {
		t.Helper()
		got := do(t, ref, c)
		failure := got.Failure()
		if failure == nil || failure.Reason != reason || !strings.Contains(failure.Message, message) || forge.As[*forge.Summarization](got.Output) != nil {
			t.Errorf("got %+v", got.Failure())
		}
	}
	fails(iterated(), forge.FailInvalidOutput, `result is "done"`)
	fails(command(forge.StepSummarize), forge.FailInvalidOutput, "goal.execution")
	c := iterated()
	c.Task.Base, c.Task.Head = strings.Repeat("1", 40), "--upload-pack=x"
	fails(c, forge.FailInvalidOutput, "head")
	c.Task.Head = strings.Repeat("2", 40)
	fails(c, forge.FailRepository, "not found")
}

// The real CLI sums up without a tool, and mends a summary that is none.
func TestClaudeSummarizes(t *testing.T) {
	answer := func(result string) object {
		return object{
			"approach": "Cut it.", "result": result, "reason": "It is short.", "artifacts": []string{"a.txt"},
			"next": object{"suggested_action": " "}, "knowledge": []object{},
		}
	}
	mended := answer("success")
	delete(mended, "next")
	cli, model := repotest.Claude(t, agenttest.Steps(agenttest.Answer(answer("success")), agenttest.Answer(mended)))
	r, ref := world(t, map[string]string{"a.txt": "a long one\n"}, cli)
	c := iterated()
	changed(r, &c)
	got := do(t, ref, c)
	if got.Failure() != nil || got.Usage.InputTokens == 0 || got.Agent != "claude" {
		t.Fatalf("%+v", got)
	}
	s := forge.As[*forge.Summarization](got.Output).Summary
	if s.Iteration != 3 || s.Approach != "Cut it." || s.Result != forge.ExecutionSuccess || s.Next != nil || s.Metadata.TokensUsed != 7 {
		t.Errorf("%+v", s)
	}
	requests := model.Requests("model")
	if first := requests[0]; !strings.Contains(first.System, "You sum up one iteration") || !strings.Contains(first.LastUser, "I made it short.") {
		t.Errorf("told %s", first.LastUser)
	}
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "next.suggested_action is empty") {
		t.Errorf("it was not asked to correct its answer: %s", last.LastUser)
	}
	for _, tool := range requests[0].Tools {
		if tool != "StructuredOutput" {
			t.Errorf("it has %s", tool)
		}
	}
}
