package task_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// TestCombine has what follows from the verdicts of two reviewers. Nothing but two
// approvals of the same commit by different reviewers is an approval where two are needed.
func TestCombine(t *testing.T) {
	review := func(second bool, by, head string, v forge.Verdict) *forge.Review {
		return &forge.Review{TaskID: "a-001", Head: head, By: forge.Reviewer{Agent: by}, Second: second, Verdict: v}
	}
	yes, no := forge.VerdictApproved, forge.VerdictRejected
	for _, tt := range []struct {
		name          string
		first, second *forge.Review
		two           bool
		want          task.On
	}{
		{"one is enough", review(false, "a", "h", yes), nil, false, task.Approved},
		{"one rejects", review(false, "a", "h", no), nil, false, task.Rejected},
		{"the first rejects", review(false, "a", "h", no), nil, true, task.Rejected},
		{"the first rejects, the second is late", review(false, "a", "h", no), review(true, "b", "h", yes), true, task.Rejected},
		{"the second is needed", review(false, "a", "h", yes), nil, true, task.FirstApproved},
		{"both approve", review(false, "a", "h", yes), review(true, "b", "h", yes), true, task.Approved},
		{"they disagree", review(false, "a", "h", yes), review(true, "b", "h", no), true, task.Disagreed},
		{"of an older commit", review(false, "a", "h", yes), review(true, "b", "g", yes), true, task.FirstApproved},
		{"the first again", review(false, "a", "h", yes), review(true, "a", "h", yes), true, task.FirstApproved},
		{"given for the second", review(false, "a", "h", yes), review(false, "b", "h", yes), true, task.FirstApproved},
		{"two second ones", review(true, "a", "h", yes), review(true, "b", "h", yes), true, task.FirstApproved},
		{"no verdict", review(false, "a", "h", yes), review(true, "b", "h", "maybe"), true, task.Disagreed},
		{"no verdict at all", &forge.Review{}, nil, false, task.Rejected},
	} {
		if got := task.Combine(tt.first, tt.second, tt.two); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
