package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

func TestExecution(t *testing.T) {
	got, obs, err := agent.ParseExecution([]byte(`{"status": "failure", "output": " The tests\nfail.\u202e ", "artifacts": ["a.go", "a\nb.go", "a.go"],
		"semantic_metadata": {"approach": "First the tests.", "strategy_tags": ["test-first"], "discoveries": ["a.go:3: it is cached"]},
		"applied_knowledge": ["other/k1"], "observations": [{"content": "a trap", "evidence": [{"type": "file", "ref": "a.go:3"}]}]}`))
	want := forge.Execution{
		Status: forge.ExecutionFailure, Output: "The tests\nfail.<U+202E>", Artifacts: []string{"a.go", "a b.go"}, Approach: "First the tests.",
		StrategyTags: []string{"test-first"}, Discoveries: []string{"a.go:3: it is cached"}, Applied: []string{"other/k1"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if len(obs) != 1 || obs[0].Source != forge.StepExecute {
		t.Errorf("observed %+v", obs)
	}
}

// What an agent says is kept at a size that can be.
func TestExecutionIsBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	var list []string
	for i := range 100 {
		list = append(list, fmt.Sprintf(`"%d%s"`, i, long))
	}
	many := "[" + strings.Join(list, ", ") + "]"
	got, _, err := agent.ParseExecution(fmt.Appendf(nil,
		`{"status": "success", "output": %q, "semantic_metadata": {"approach": %q, "discoveries": %s}}`, long, long, many))
	if err != nil || len(got.Output) > 4000 || len(got.Approach) > 1000 || len(got.Discoveries) != 30 || len(got.Discoveries[29]) > 300 {
		t.Errorf("%v: %d, %d, %d", err, len(got.Output), len(got.Approach), len(got.Discoveries))
	}
}

func TestExecutionRefused(t *testing.T) {
	spec := agent.Spec(agent.RoleExecute)
	for _, tt := range []struct{ in, want string }{
		{``, "is missing"},
		{`{"status": "done", "output": "x", "semantic_metadata": {"approach": "y"}}`, `status is "done"; must be success, failure or error`},
		{`{"status": "success", "output": " \n", "semantic_metadata": {"approach": "y"}}`, "output is empty"},
		{`{"status": "success", "output": "x"}`, "semantic_metadata.approach is empty"},
		{
			`{"status": "error", "output": "x", "semantic_metadata": {"approach": "y"}, "observations": [{"content": ""}]}`,
			"observations[0].content is empty",
		},
	} {
		err := spec.Check([]byte(tt.in))
		if f, ok := errors.AsType[*agent.Failure](err); !ok || f.Reason != forge.FailInvalidOutput || !strings.Contains(f.Message, tt.want) {
			t.Errorf("%s:\n got %v\nwant ...%s", tt.in, err, tt.want)
		}
	}
}
