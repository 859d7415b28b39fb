package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
)

func TestParseIntake(t *testing.T) {
	wanted := []string{"All  tests\npass", "It is fast"}
	got, obs, err := agent.ParseIntake([]byte(`{"status": "accepted", "task": " Do it.\u001b[2J ", "type": "fix", "risk": "med", "complexity": "high",
		"criteria": ["All tests pass", "BenchmarkX takes\nless than 1ms", "all tests pass", "All tests pass"], "validation_notes": "Fast is now a number.",
		"relevant_files": ["a.go"], "observations": [{"content": "odd"}]}`), wanted)
	want := forge.Intake{
		Task: "Do it.", Criteria: []string{"All  tests\npass", "BenchmarkX takes less than 1ms", "all tests pass"}, Notes: "Fast is now a number.",
		Type: "fix", Risk: forge.RiskMed, Complexity: forge.ComplexityHigh, RelevantFiles: []string{"a.go"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(obs) != 1 || obs[0].Source != forge.StepIntake {
		t.Errorf("%v, %v\n%s", err, obs, diff)
	}
	got, _, err = agent.ParseIntake([]byte(`{"status": "needs_clarification", "task": "unused", "criteria": ["x"], "type": "", "risk": "low",
		"clarification_questions": [{"question": "Which?", "context": "There are two.", "suggested_answers": ["a", " ", "a", "b"]}]}`), wanted)
	want = forge.Intake{
		Clarifications: []forge.Clarification{{Question: "Which?", Context: "There are two.", SuggestedAnswers: []string{"a", "b"}}},
		Risk:           forge.RiskLow,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestParseSummarization(t *testing.T) {
	many := make([]agent.Knowledge, 0, 20)
	for i := range 20 {
		many = append(many, agent.Knowledge{Type: "lesson", Category: "c", Content: fmt.Sprint("k", i/2), Confidence: "low"})
	}
	many[0] = agent.Knowledge{Type: "pattern", Category: "error\nhandling", Content: strings.Repeat("é", 900), ExampleFile: "./a/../b.go:3-9", Confidence: "high"}
	many[2].ExampleFile, many[4].ExampleFile = "/etc/passwd", "../x"
	answer, err := json.Marshal(agent.Summarization{
		Approach: "Tests first.", Result: "failure", Reason: "One fails.", Artifacts: []string{"a.go", "a.go"}, Knowledge: many,
		Next: &agent.NextAction{SuggestedAction: "Mend it.", Blockers: []string{"no network"}, PartialProgress: "half", PendingItems: make([]string, 5)},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := agent.ParseSummarization(answer)
	want := forge.Summarization{Summary: forge.ExecutionSummary{
		Approach: "Tests first.", Result: forge.ExecutionFailure, Reason: "One fails.", Artifacts: []string{"a.go"},
		Next: &forge.NextAction{SuggestedAction: "Mend it.", Blockers: []string{"no network"}, PartialProgress: "half"},
	}, Knowledge: []forge.Knowledge{{
		Type: forge.KnowledgePattern, Category: "error handling", Content: strings.Repeat("é", 498) + "…",
		ExampleFile: "b.go:3-9", Confidence: forge.ConfidenceHigh,
	}}}
	for i := range 9 { // each once, ten in all
		want.Knowledge = append(want.Knowledge, forge.Knowledge{
			Type: forge.KnowledgeLesson, Category: "c", Content: fmt.Sprint("k", i), Confidence: forge.ConfidenceLow,
		})
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// The types have the fields of the schemas, and the checks accept them.
func TestGoalSchemas(t *testing.T) {
	list := []string{"x"}
	seen := []agent.Observation{{Content: "x", Evidence: []agent.Evidence{{Type: "file", Ref: "x"}}}}
	ask := []agent.GoalQuestion{{Question: "x", Context: "x", Suggested: list}}
	for _, tt := range []struct {
		role   agent.Role
		answer any
	}{
		{agent.RoleIntake, agent.Intake{
			Status: "accepted", Task: "x", Criteria: list, Notes: "x", Type: "fix", Risk: "low", Complexity: "low", RelevantFiles: list, Observations: seen,
		}},
		{agent.RoleIntake, agent.Intake{Status: "needs_clarification", Criteria: []string{}, Type: "fix", Risk: "low", Questions: ask}},
		{agent.RoleSummarize, agent.Summarization{
			Approach: "x", Result: "success", Reason: "x", Artifacts: list,
			Next:      &agent.NextAction{SuggestedAction: "x", Blockers: list, PartialProgress: "x", PendingItems: list},
			Knowledge: []agent.Knowledge{{Type: "codebase", Category: "x", Content: "x", ExampleFile: "x", Confidence: "high"}},
		}},
		{agent.RoleJudge, agent.Judgment{Criteria: []agent.Claim{claim(1, true)}, Reason: "x", Complete: true, NextAction: "x"}},
	} {
		answer, err := json.Marshal(tt.answer)
		if err != nil {
			t.Fatal(err)
		}
		spec := agent.Spec(tt.role)
		if err := errors.Join(cli.ValidateSchema(spec.Schema, answer), spec.Check(answer)); err != nil {
			t.Errorf("%s: %v", tt.role, err)
		}
	}
}

func claim(number int, met bool) agent.Claim {
	return agent.Claim{
		Number: number, Met: met, Confidence: 0.5, Note: "It is there.",
		Evidence: []agent.Citation{{Kind: "file", Ref: "a.go:1", Quote: "package a"}},
	}
}

func judge(t *testing.T, complete bool, next string, list ...agent.Claim) (forge.Judgment, error) {
	t.Helper()
	answer, err := json.Marshal(agent.Judgment{Criteria: list, Reason: "So.", Complete: complete, NextAction: next})
	if err != nil {
		t.Fatal(err)
	}
	return agent.ParseJudgment(answer)
}

// A judgment that contradicts itself is no malformed one: the rules decide on it.
func TestParseJudgment(t *testing.T) {
	got, err := judge(t, true, "Do the rest.", claim(2, false), claim(1, true), claim(1, true), claim(9, true))
	want := forge.Judgment{Complete: true, Reason: "So.", NextAction: "Do the rest."}
	for _, number := range []int{2, 1, 1, 9} {
		want.Claims = append(want.Claims, forge.Claim{
			Number: number, Met: number != 2, Confidence: 0.5, Note: "It is there.",
			Evidence: []forge.Citation{{Kind: forge.CitationFile, Ref: "a.go:1", Quote: "package a"}},
		})
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestJudgmentsRefused(t *testing.T) {
	one := func(change func(*agent.Claim)) error {
		c := claim(1, true)
		change(&c)
		_, err := judge(t, true, "", c)
		return err
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{one(func(c *agent.Claim) { c.Confidence = 95 }), "criteria[0].confidence is 95; must be 0 to 1"},
		{one(func(c *agent.Claim) { c.Confidence = -0.1 }), "criteria[0].confidence is -0.1; must be 0 to 1"},
		{one(func(c *agent.Claim) { c.Evidence[0].Kind = "hearsay" }), `criteria[0].evidence[0].kind is "hearsay"; must be command, file, diff or absence`},
		{one(func(c *agent.Claim) { c.Evidence = make([]agent.Citation, 21) }), "criteria[0].evidence has 21 entries"},
		{one(func(c *agent.Claim) { c.Evidence[0].Ref = strings.Repeat("x", 5000) }), "ref has 5000 bytes"},
	} {
		refused(t, tt.err, tt.want)
	}
	_, err := judge(t, true, "", make([]agent.Claim, 101)...)
	refused(t, err, "criteria has 101 entries")
	_, err = agent.ParseJudgment([]byte(`{"criteria": [], "is_complete": true}`))
	refused(t, err, "overall_reason is empty")
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	var f *agent.Failure
	if !errors.As(err, &f) || f.Reason != forge.FailInvalidOutput || !strings.Contains(f.Message, want) {
		t.Errorf("got %v\nwant ...%s", err, want)
	}
}

func TestGoalAnswersRefused(t *testing.T) {
	intake := func(s string) error {
		_, _, err := agent.ParseIntake([]byte(s), []string{"It is fast", "It is small"})
		return err
	}
	accepted := func(s string) error {
		return intake(`{"status": "accepted", "task": "t", "risk": "low", "type": "fix", "criteria": ["It is fast", "It is small"]` + s + `}`)
	}
	summary := func(s string) error { _, err := agent.ParseSummarization([]byte(s)); return err }
	knows := func(s string) error {
		return summary(`{"approach": "a", "result": "success", "reason": "r", "knowledge": [` + s + `]}`)
	}
	lines := strings.Repeat(`"c",`, 3)
	numbers := make([]string, forge.MaxCriteria+1)
	for i := range numbers {
		numbers[i] = fmt.Sprintf(`"c%d"`, i)
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{intake(`{"status": "done"}`), `status is "done"; must be accepted or needs_clarification`},
		{intake(`{"status": "needs_clarification"}`), "clarification_questions is empty"},
		{intake(`{"status": "needs_clarification", "clarification_questions": [{"question": " "}]}`), "clarification_questions[0].question is empty"},
		{intake(`{"status": "needs_clarification", "risk": "medium"}`), `risk is "medium"`},
		{intake(`{"status": "needs_clarification", "type": "Two words"}`), `type is "Two words"`},
		{accepted(`, "clarification_questions": [{"question": "Which?"}]`), "status is accepted, but there are clarification_questions"},
		{accepted(`, "task": " "`), "task is empty"},
		{accepted(`, "task": "` + strings.Repeat("x", forge.MaxBody+1) + `"`), "at most 65536 are allowed"},
		{accepted(`, "risk": ""`), "risk is empty"},
		{accepted(`, "type": "audit"`), `type is "audit", which is another kind of request`},
		{accepted(`, "complexity": "huge"`), `complexity is "huge"`},
		{accepted(`, "criteria": []`), "criteria is empty"},
		{accepted(`, "criteria": ["a", ""]`), "criteria[1] is empty"},
		{accepted(`, "criteria": ["` + strings.Repeat("x", forge.MaxCriterion+1) + `"]`), "criteria[0] is"},
		{accepted(`, "criteria": [` + strings.Join(numbers, ",") + `]`), fmt.Sprintf("at most %d are allowed", forge.MaxCriteria)},
		{accepted(`, "criteria": [` + lines + `"c"]`), "has 1 criteria, and the request has 2"},
		{accepted(`, "criteria": ["It is fast", "It has 3 KB"]`), `criteria lacks "It is small", which the request has`},
		{accepted(`, "observations": [{"content": ""}]`), "observations[0].content is empty"},
		{summary(`{"result": "success", "reason": "r"}`), "approach is empty"},
		{summary(`{"approach": "a", "result": "success"}`), "reason is empty"},
		{summary(`{"approach": "a", "result": "ok", "reason": "r"}`), `result is "ok"; must be success, failure or error`},
		{summary(`{"approach": "a", "result": "error", "reason": "r", "next": {}}`), "next.suggested_action is empty"},
		{knows(`{"type": "fact"}`), `knowledge[0].type is "fact"`},
		{knows(`{"type": "lesson"}`), "knowledge[0].category is empty"},
		{knows(`{"type": "lesson", "category": "c"}`), "knowledge[0].content is empty"},
		{knows(`{"type": "lesson", "category": "c", "content": "x", "confidence": "0.9"}`), `knowledge[0].confidence is "0.9"`},
	} {
		refused(t, tt.err, tt.want)
	}
	if err := accepted(""); err != nil {
		t.Error(err)
	}
	if err := accepted(`, "criteria": ["It is fast", "It has 3 KB"], "validation_notes": "Small is a number."`); err != nil {
		t.Error(err)
	}
}
