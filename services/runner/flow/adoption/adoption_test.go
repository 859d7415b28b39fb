package adoption_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/adoption"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// TestOffered: a commit is offered to the one task that waits with it at its
// branch; of one that is being merged a repetition is ignored, and everything
// else is refused with a word of what could be adopted.
func TestOffered(t *testing.T) {
	const seen, other = "0123456789abcdef", "fedcba9876543210"
	at := func(id forge.TaskID, stage task.Stage, offer, taken string) *task.Task {
		one := &task.Task{Task: forge.Task{ID: id}, Stage: stage}
		if offer != "" {
			one.Offer = &forge.Adoption{Commit: offer, Branch: "forge/" + string(id)}
		}
		if taken != "" {
			one.Taken = &forge.Adoption{Commit: taken}
		}
		return one
	}
	held := []*task.Task{at("one-001", task.Held, other, ""), at("one-002", task.Held, seen, "")}
	for name, test := range map[string]struct {
		tasks    []*task.Task
		commit   string
		paused   bool
		want     forge.TaskID
		decision forge.Decision
		err      string
	}{
		"whole":              {held, seen, false, "one-002", forge.Applied, ""},
		"its first digits":   {held, seen[:12], false, "one-002", forge.Applied, ""},
		"too few digits":     {held, seen[:11], false, "", forge.Refused, "is no commit"},
		"paused":             {held, seen, true, "one-002", forge.Refused, "resume it first: pfl-forge resume one"},
		"pushed since":       {held, "0123456789abcdff", false, "", forge.Refused, "forge/one-002, the branch of one-002, was seen at commit 0123456789ab"},
		"it is not held":     {[]*task.Task{at("one-001", task.Implementing, seen, "")}, seen, false, "", forge.Refused, "no change of the intent waits"},
		"nothing is offered": {[]*task.Task{at("one-001", task.Held, "", "")}, seen, false, "", forge.Refused, "no change of the intent waits"},
		"it is taken":        {[]*task.Task{at("one-001", task.Held, seen, seen)}, seen, false, "", forge.Ignored, "is being put on the base branch already"},
	} {
		got, decision, err := adoption.Offered(&task.Set{Tasks: test.tasks}, &adoption.Request{Intent: "one", Commit: test.commit, Paused: test.paused})
		if id := idOf(got); id != test.want || decision != test.decision || (err == nil) != (test.err == "") {
			t.Errorf("%s: %q, %s, %v, want %q, %s", name, id, decision, err, test.want, test.decision)
		}
		if err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, want %s", name, err, test.err)
		}
	}
}

// idOf returns the id of a task; empty for none.
func idOf(t *task.Task) forge.TaskID {
	if t == nil {
		return ""
	}
	return t.ID
}
