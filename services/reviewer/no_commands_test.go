package reviewer

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// Where no verify commands are configured and a goal has checks, the judge must
// not be told that verify commands passed.
func TestNoVerifyCommandsPassed(t *testing.T) {
	cmd := &forge.Command{Task: forge.Task{Base: "b", Head: "h"}, Input: &forge.IterationInput{
		Goal:   forge.GoalContext{Criteria: []string{"one"}},
		Verify: &forge.VerifyReport{Passed: true, Checks: []forge.CheckRun{{ID: "c1", Command: "true", Passed: true}}},
	}}
	_, text, err := newJudgeData(cmd, nil).render()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "all of them passed") {
		at := strings.Index(text, "# What the project's commands say")
		t.Errorf("there are none: %q", text[at:min(len(text), at+150)])
	}
}
