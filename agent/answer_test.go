package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

func TestParseAnalysis(t *testing.T) {
	got, obs, err := agent.ParseAnalysis([]byte(`{"type": "fix", "risk": "high", "depends_on": ["other"], "nothing_to_do": " ",
		"tasks": [
			{"name": "b", "title": "Two\nlines \u001b[31m", "depends_on": ["a"], "complexity": "high", "implementation_steps": ["x"]},
			{"name": "a", "title": "A", "plan": "p", "relevant_files": ["f"], "context": "c", "item": "i"}],
		"clarifications": [{"question": "Which?", "context": "c", "suggested_answers": ["x"], "param": "P"}],
		"observations": [{"content": "o", "evidence": [{"type": "history", "ref": "h"}]}], "more": 1}`))
	want := forge.Analysis{
		Type: "fix", Risk: forge.RiskHigh, DependsOn: []forge.IntentID{"other"},
		Tasks: []forge.TaskPlan{
			{Name: "b", Title: "Two lines", DependsOn: []string{"a"}, Complexity: forge.ComplexityHigh, Steps: []string{"x"}},
			{Name: "a", Title: "A", Plan: "p", RelevantFiles: []string{"f"}, Context: "c", Item: "i"},
		},
		Clarifications: []forge.Clarification{{Question: "Which?", Context: "c", SuggestedAnswers: []string{"x"}, Param: "P"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	wantObs := []forge.Observation{{
		Content: "o", Source: forge.StepAnalyze, Evidence: []forge.Evidence{{Type: forge.EvidenceHistory, Ref: "h"}},
	}}
	if diff := cmp.Diff(wantObs, obs); diff != "" {
		t.Error(diff)
	}
}

func TestAnswersRefused(t *testing.T) {
	analysis := func(s string) error { _, _, err := agent.ParseAnalysis([]byte(s)); return err }
	implementation := func(s string) error { _, _, err := agent.ParseImplementation([]byte(s)); return err }
	review := func(s string) error { _, _, err := agent.ParseReview([]byte(s)); return err }
	for _, tt := range []struct {
		parse    func(string) error
		in, want string
	}{
		{analysis, "", "is missing"},
		{analysis, "{", "unexpected end"},
		{analysis, "[]", "cannot unmarshal array"},
		{analysis, `{"tasks": []}`, "there is no task"},
		{analysis, `{"risk": "medium", "nothing_to_do": "x"}`, `risk is "medium"; must be low, med or high`},
		{analysis, `{"depends_on": ["../x"], "nothing_to_do": "x"}`, "depends_on[0]: intent id"},
		{analysis, `{"clarifications": [{"question": " "}]}`, "clarifications[0].question is empty"},
		{analysis, `{"tasks": [{"name": "a"}]}`, "tasks[0].title is empty"},
		{analysis, `{"tasks": [{"name": "a", "title": "x"}, {"name": "a", "title": "y"}]}`, `two tasks are named "a"`},
		{analysis, `{"tasks": [{"name": "a", "title": "x", "complexity": "huge"}]}`, `tasks[0].complexity is "huge"`},
		{analysis, `{"tasks": [{"name": "a", "title": "x", "depends_on": ["b"]}]}`, `task "a" depends on "b", which is no task`},
		{analysis, `{"tasks": [{"name": "a", "title": "x", "depends_on": ["a"]}]}`, "form a circle"},
		{
			analysis, `{"tasks": [{"name": "a", "title": "x", "depends_on": ["b", "b"]}, {"name": "b", "title": "y", "depends_on": ["a"]}]}`,
			"form a circle",
		},
		{analysis, `{"nothing_to_do": "x", "observations": [{"content": ""}]}`, "observations[0].content is empty"},
		{analysis, `{"nothing_to_do": "x", "observations": [{"content": "c", "evidence": [{"type": "gut"}]}]}`, `observations[0].evidence[0].type is "gut"`},
		{analysis, `{"nothing_to_do": "` + strings.Repeat("x", 2<<20) + `"}`, "at most 1048576 are allowed"},
		{implementation, "null x", "invalid character"},
		{review, `{"verdict": "ok"}`, `verdict is "ok"; must be approved or rejected`},
		{review, `{"verdict": "approved", "requirements": [{"number": 1, "met": true, "confidence": 2}]}`, "requirements[0].confidence is 2"},
		{review, `{"verdict": "approved", "requirements": [{"number": 1, "evidence": [{"kind": "faith"}]}]}`, `kind is "faith"`},
		{review, `{"verdict": "approved", "requirements": [{"number": "one"}]}`, "cannot unmarshal"},
		{analysis, `{"tasks": [{"title": "t", "requirements": ["a", " "]}]}`, "tasks[0].requirements[1] is empty"},
		{analysis, `{"tasks": [{"title": "t", "requirements": ["a", "a"]}]}`, "tasks[0].requirements[1] repeats"},
		{analysis, `{"tasks": [{"title": "t", "requirements": ["` + strings.Repeat("x", forge.MaxCriterion+1) + `"]}]}`, "has 1001 bytes"},
	} {
		err := tt.parse(tt.in)
		var f *agent.Failure
		if !errors.As(err, &f) || f.Reason != forge.FailInvalidOutput || !strings.Contains(f.Message, tt.want) {
			t.Errorf("%.80s:\n got %v\nwant ...%s", tt.in, err, tt.want)
		}
	}
}

func TestTasksAreBounded(t *testing.T) {
	var a agent.Analysis
	for i := range 1001 {
		a.Tasks = append(a.Tasks, agent.Plan{Name: fmt.Sprint(i), Title: "t", DependsOn: []string{"0"}})
	}
	a.Tasks[0].DependsOn = nil
	for n, want := range map[int]bool{1000: true, 1001: false} {
		data, err := json.Marshal(agent.Analysis{Tasks: a.Tasks[:n]})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := agent.ParseAnalysis(data); (err == nil) != want {
			t.Errorf("%d tasks: %v", n, err)
		}
	}
}

// TestSchemasSayWhatParsesTake keeps schemas and structs together.
func TestSchemasSayWhatParsesTake(t *testing.T) {
	recipesOnly := map[string]bool{"item": true, "param": true}
	for name, s := range map[string]struct {
		schema []byte
		answer any
	}{
		"analysis": {agent.AnalysisSchema, agent.Analysis{
			Type: "x", Risk: "low", Tasks: []agent.Plan{{
				Name: "x", Title: "x", Plan: "x", RelevantFiles: []string{"x"}, Steps: []string{"x"}, Context: "x", Requirements: []string{"x"},
				Complexity: "low", DependsOn: []string{"x"}, Item: "x",
			}},
			Clarifications: []agent.Question{{Question: "x", Context: "x", Suggested: []string{"x"}, Param: "x"}},
			DependsOn:      []string{"x"}, NothingToDo: "x", Observations: observed, Insufficient: "x",
			Children: []agent.Child{{Name: "x", Title: "x", Body: "x", Type: "x", Risk: "low", DependsOn: []string{"x"}}},
		}},
		"audit": {agent.AuditSchema, agent.Audit{Summary: "x", Areas: []agent.AuditArea{{
			Name: "tests", Summary: "x", Findings: []agent.Finding{{Title: "x", Detail: "x", Severity: "low", Evidence: observed[0].Evidence}},
		}}}},
		"observed": {agent.ObservedSchema, agent.Observed{
			Patterns: []agent.Pattern{{Name: "x", Description: "x", Evidence: observed[0].Evidence}}, NothingFound: "x", Observations: observed,
		}},
		"abstraction": {agent.AbstractionSchema, agent.Abstraction{
			Skills: []agent.Skill{{Name: "x", Description: "x", Body: "x"}}, NothingNew: "x", Observations: observed,
		}},
		"reflection": {agent.ReflectionSchema, agent.Reflection{
			Proposals: []agent.Proposal{{Title: "x", Body: "x", Type: "x", Risk: "low"}}, Observations: observed,
		}},
		"implementation": {agent.ImplementationSchema, agent.Implementation{
			Summary: "x", Observations: observed,
			Word: agent.Word{NothingToDo: "x", Blocked: &agent.Blocked{Reason: "x", Question: "x", Suggested: []string{"x"}}},
		}},
		"review": {agent.ReviewSchema, agent.Review{
			Requirements: []agent.Claim{claim(1, true)},
			Verdict:      "approved", Issues: []string{"x"}, Suggestions: []string{"x"}, Observations: observed,
		}},
	} {
		data, err := json.Marshal(s.answer)
		if err != nil {
			t.Fatal(err)
		}
		var schema, answer any
		if err := errors.Join(json.Unmarshal(s.schema, &schema), json.Unmarshal(data, &answer)); err != nil {
			t.Fatal(err)
		}
		compare(t, name, schema, answer, recipesOnly)
	}
}

var observed = []agent.Observation{{Content: "x", Evidence: []agent.Evidence{{Type: "file", Ref: "x"}}}}

func compare(t *testing.T, path string, schema, answer any, leftOut map[string]bool) {
	t.Helper()
	s, _ := schema.(map[string]any)
	switch a := answer.(type) {
	case map[string]any:
		props, _ := s["properties"].(map[string]any)
		for key := range props {
			if _, ok := a[key]; !ok {
				t.Errorf("%s: the schema has %q, the struct has not", path, key)
			}
		}
		for key, v := range a {
			if p, ok := props[key]; ok {
				compare(t, path+"."+key, p, v, leftOut)
			} else if !leftOut[key] {
				t.Errorf("%s: the struct has %q, the schema has not", path, key)
			}
		}
	case []any:
		compare(t, path+"[]", s["items"], a[0], leftOut)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"tasks":[{"name":"a","title":"t","depends_on":["a"]}],"verdict":"approved","summary":"s"}`))
	f.Add([]byte(`{"clarifications":[{"question":"q"}],"observations":[{"content":"c","evidence":[{"type":"file"}]}]}`))
	f.Add([]byte(`{"status":"success","output":"o","semantic_metadata":{"approach":"a"},"approach":"a","result":"success","reason":"r"}`))
	f.Add([]byte(`{"evaluations":[{"criterion":"1","met":true,"evidence":"e","confidence":1},{"criterion":"2","met":false,"confidence":2}],"risk":"low"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, _, err := agent.ParseAnalysis(data)
		if err == nil && len(a.Tasks) == 0 && len(a.Clarifications) == 0 && len(a.Children) == 0 && a.NothingToDo == "" && a.Insufficient == "" {
			t.Error("an empty analysis was taken")
		}
		_, _, _ = agent.ParseImplementation(data)
		r, _, err := agent.ParseReview(data)
		if err == nil && r.Verdict != forge.VerdictApproved && len(r.Issues) == 0 {
			t.Error("a review without a verdict was taken")
		}
		if audit, err := agent.ParseAudit(data); err == nil && len(audit.Areas) != len(agent.AuditAreas()) {
			t.Error("an audit that left something out was taken")
		}
		if o, _, err := agent.ParseObserved(data); err == nil && len(o.Patterns) == 0 && o.NothingFound == "" {
			t.Error("an answer without patterns and without a reason was taken")
		}
		_, _, _ = agent.ParseAbstraction(data)
		if e, _, err := agent.ParseExecution(data); err == nil && (e.Output == "" || e.Approach == "") {
			t.Errorf("an execution that says nothing was taken: %+v", e)
		}
		criteria := []string{"it works", "2"}
		if j, err := agent.ParseJudgment(data); err == nil && (j.Reason == "" || slices.ContainsFunc(j.Claims, func(c forge.Claim) bool {
			return !(c.Confidence >= 0 && c.Confidence <= 1) || slices.ContainsFunc(c.Evidence, func(e forge.Citation) bool { return e.Resolved })
		})) {
			t.Errorf("a malformed judgment was taken: %+v", j)
		}
		if s, err := agent.ParseSummarization(data); err == nil && (s.Summary.Approach == "" || s.Summary.Reason == "") {
			t.Errorf("a summary that says nothing was taken: %+v", s)
		}
		_, _, _ = agent.ParseIntake(data, criteria)
		if list, _, err := agent.ParseReflection(data); err == nil {
			for _, in := range list {
				in.ID, in.Project, in.Source = "x", "x", forge.SourceReflection
				if e := in.Validate(); e != nil {
					t.Errorf("a proposal that is no intent was taken: %v", e)
				}
			}
		}
	})
}

// What an agent says instead of a change is one thing, and complete; empty texts say nothing.
func TestParseWord(t *testing.T) {
	for answer, want := range map[string]string{
		`{"summary":"done"}`: "",
		`{"summary":"x","blocked":{"reason":"","question":" "}}`:                      "",
		`{"summary":"x","nothing_to_do":"a.go:1 has it"}`:                             "a.go:1 has it",
		`{"summary":"x","blocked":{"reason":"r","question":"q"}}`:                     "q",
		`{"summary":"x","blocked":{"reason":"r","question":""}}`:                      "blocked.question is empty",
		`{"summary":"x","blocked":{"reason":"","question":"q"}}`:                      "blocked.reason is empty",
		`{"summary":"x","nothing_to_do":"y","blocked":{"reason":"r","question":"q"}}`: "say one of them",
	} {
		q, nothing, err := agent.ParseWord([]byte(answer))
		got := nothing
		switch {
		case err != nil:
			got = err.Error()
		case q != nil:
			got = q.Question
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, not %q", answer, got, want)
		}
		if _, _, err2 := agent.ParseImplementation([]byte(answer)); (err == nil) != (err2 == nil) {
			t.Errorf("%s: ParseImplementation says %v", answer, err2)
		}
	}
}
