package task

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
)

// Two people approved a patch because of protected paths. Later its reviewers
// disagree about the same patch; the rules ask for two approvals, and one
// person says "approve". That has to wait for the other one.
func TestOldClearanceIsNoApprovalOfADispute(t *testing.T) {
	c := &forge.Rebase{Base: "b", Head: "h", PatchID: "p", Files: []string{".github/x"}}
	old := &approval.Granted{Rules: forge.Approvals{Count: 2}, Approvals: []approval.Approval{{By: "bob"}, {By: "eve"}}}
	tk := &Task{Task: forge.Task{ID: "a-001"}, Stage: Reviewing, Candidate: c, Cleared: Clearance{Name: clearance(c), By: old}}
	tk.Disputes = maxDisputes - 1
	x := NewTurn(Turn{
		Intent: &forge.Intent{}, Policy: &forge.Policy{ProtectedPaths: []string{".github/"}, Approvals: forge.Approvals{Count: 2}},
		Strategy: Change{}, Tasks: &Set{Tasks: []*Task{tk}},
	})
	if (Pair{tk}).disagree(x); tk.Stage != Disputed {
		t.Fatalf("it is %s", tk.Stage)
	}
	Pair{tk}.Decided(x, "approve", nil)
	if tk.Stage != Protected {
		t.Errorf("it is %s", tk.Stage)
	}
}

// Only the words that the question offers decide. What is nearly one of them costs no attempt.
func TestWordsOfADispute(t *testing.T) {
	for answer, want := range map[string]string{
		"approve": "approve", " Approve ": "approve", "reject": "reject", "REJECT": "reject", "reject: too long": "reject too long",
		"reject, too long": "reject too long", "reject the limits": "reject the limits", "Reject.": "reject",
		"approved": "", "Approve.": "", "yes": "", "rejected": "", "no": "", "": "", "rejéct": "", "do not reject": "",
	} {
		got := ""
		if messages.Approves(answer) {
			got = "approve"
		}
		if words, is := Rejects(answer); is {
			got += "reject"
			if words != "" {
				got += " " + words
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}
