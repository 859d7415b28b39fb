package bus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestAnswersThatApproveTakeTheRightToApprove: the answer by which a person decides
// between two reviewers approves a change, so it comes on the subject of approvals, and
// the right to answer is not enough for it. Every other answer takes that right alone.
func TestAnswersThatApproveTakeTheRightToApprove(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	st := newStrict(t, "forge.intent.shop.by.ada.*", "forge.intent.shop.by.ada.answer")
	ada := st.connect("ada", "ada")
	nc, _ := as(t, st.s, "ada")
	const question = "The reviewers of fix-login-001 disagree again, now about commit 1234567890. Does it count as approved?"
	for i, said := range []string{"approve", "Approve", " APPROVE\n"} {
		ev := forge.Event{ID: fmt.Sprint("approves-", i), To: key, Actor: "ada", Message: &forge.Answer{Question: question, Answer: said}}
		data, err := wire.Events.Marshal(&ev)
		if err != nil {
			t.Fatal(err)
		}
		m := message{said, "ada", "forge.intent.shop.by.ada.answer", data, ev.ID}
		send(t, nc, &m, keyOf(t, "ada"), time.Now())
		if got := st.await([]message{m}); len(got) > 0 {
			t.Errorf("%q was decided on", said)
		}
		if reason := st.reason(m.subject, m.mark); !strings.Contains(reason, `it was sent as "answer", but holds "approve"`) {
			t.Errorf("%q: %s", said, reason)
		}
		if err := ada.Submissions.Send(ctx, ev); err == nil || !strings.Contains(err.Error(), "forge.intent.shop.by.ada.approve") {
			t.Errorf("%q is sent by our own program: %v", said, err)
		}
	}
	for i, said := range []string{"reject", "reject: a test is missing", "yes, approve", "approved"} {
		ev := forge.Event{ID: fmt.Sprint("answers-", i), To: key, Actor: "ada", Message: &forge.Answer{Question: question, Answer: said}}
		if r, err := ada.Submissions.Ask(ctx, ev); err != nil || r.Decision != forge.Applied {
			t.Errorf("%q: %+v, %v", said, r, err)
		}
	}
	bob := st.connect("bob", "bob")
	to := forge.Key{Project: "bank", Intent: key.Intent}
	ev := forge.Event{ID: "bob-approves", To: to, Actor: "bob", Message: &forge.Answer{Question: question, Answer: "approve"}}
	if r, err := bob.Submissions.Ask(ctx, ev); err != nil || r.Decision != forge.Applied {
		t.Errorf("who may approve: %+v, %v", r, err)
	}
}
