package auditlog

import (
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/proof"
)

// TestSignaturesInJournals examines events that a runner could have journaled:
// true ones, and true signatures beside other words.
func TestSignaturesInJournals(t *testing.T) {
	var list proof.Signers
	keys := map[string]*proof.Key{}
	for account, role := range map[string]string{"ada": "operator", "bob": "operator", "scanner": "submitter", "reviewer": "reviewer", "gateway": "gateway"} {
		k, err := proof.Derive([]byte(strings.Repeat(account+"-", 32)), account)
		if err != nil {
			t.Fatal(err)
		}
		keys[account], list = k, append(list, k.AccountSigner(role))
	}
	to := forge.Key{Project: "shop", Intent: "fix-login"}
	event := func(m forge.Message) *forge.Event { return &forge.Event{ID: "1", To: to, Actor: "ada", Message: m} }
	sign := func(account, subject string, ev *forge.Event) string {
		content, err := journal.Content(ev)
		if err != nil {
			t.Fatal(err)
		}
		p, err := signed.Sign(keys[account], &signed.Message{Subject: subject, Payload: content}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return p.String()
	}
	review := func(number int) *forge.Event {
		a := forge.Attempt{Task: "fix-login-001", Step: forge.StepReview, Number: number, Claim: 1}
		return event(&forge.Result{To: to, Attempt: a, Replica: "reviewer-0", Output: &forge.Review{TaskID: a.Task, Attempt: 1, Verdict: forge.VerdictApproved}})
	}
	const asks, reports = "forge.intent.shop.by.ada.approve", "forge.result.review.shop.fix-login"
	approve := event(&forge.Approve{Plan: "a"})
	ours, theirs := sign("ada", asks, approve), sign("reviewer", reports, review(1))
	const through = "forge.intent.shop.by.ada.via.gateway.approve"
	handed := event(&forge.Approve{Plan: "a"})
	handed.Via, handed.Account, handed.Ref = "gateway", "token ada-laptop", "r1"
	other, accounted, forBob, invented := *handed, *handed, *handed, *approve
	forBob.Actor = "bob"
	other.Via, accounted.Account = "other", "token ada-phone"
	invented.Via, invented.Account = "gateway", "token ada-laptop"
	attributed := review(1)
	attributed.Account = "token ada-laptop"
	anothers := event(&forge.Approve{Plan: "a"})
	anothers.Actor = "bob"
	elsewhere := event(&forge.Approve{Plan: "a"})
	elsewhere.To.Project = "bank"
	submitted := event(&forge.Submit{Intent: forge.Intent{ID: to.Intent, Project: to.Project, Origin: forge.Origin{System: "scanner"}}})
	for _, c := range []struct {
		name, text string
		ev         *forge.Event
		kind       chain.Kind
		want       string
	}{
		{"a person's", ours, approve, "", ""},
		{"a worker's", theirs, review(1), "", ""},
		{"none", "", approve, unsigned, "has no signature"},
		{"garbage", "v1 x", approve, unproven, "want v1"},
		{"a person's other words", ours, event(&forge.Approve{Plan: "b"}), reworded, "signed by ada in another form"},
		{"a person's in another's name", ours, anothers, unproven, "it was signed by ada, and is journaled as from bob"},
		{"a person's in another project", ours, elsewhere, unproven, "another project"},
		{"a result of another attempt", theirs, review(2), unproven, "is not the result that was signed"},
		{"a result by a person", sign("ada", reports, review(1)), review(1), unproven, "it was signed by ada, and is journaled as from reviewer"},
		{"a result of another intent", sign("reviewer", "forge.result.review.shop.other", review(1)), review(1), unproven, "another attempt"},
		{"a system's", sign("scanner", "forge.api.shop.from.scanner.submit", submitted), submitted, "", ""},
		{"a gateway's for a person", sign("gateway", through, handed), handed, "", ""},
		{"a gateway's, in another's name", sign("gateway", through, handed), &forBob, unproven, "it was signed as from ada, and is journaled as from bob"},
		{
			"a gateway's, said to be another's", sign("gateway", through, handed), &other, unproven,
			`it was signed through "gateway", and is journaled as through "other"`,
		},
		{"a gateway's, which is not named", sign("gateway", through, handed), approve, unproven, `it was signed through "gateway", and is journaled as through ""`},
		{"a person's, with an invented gateway", ours, &invented, unproven, `it was signed through "", and is journaled as through "gateway"`},
		{"a worker's, with an invented gateway", theirs, attributed, unproven, "it was signed by a worker, and is journaled as through a gateway"},
		{"a gateway's of another account", sign("gateway", through, handed), &accounted, reworded, "signed by gateway in another form"},
		{"a person's as a gateway's", sign("ada", through, handed), handed, unproven, "it was signed by ada, and is journaled as from gateway"},
		{"a gateway's as a person's", sign("gateway", asks, approve), approve, unproven, "it was signed by gateway, and is journaled as from ada"},
		{"a system's as an approval", sign("scanner", "forge.intent.shop.from.scanner.submit", submitted), approve, unproven, "may only submit"},
	} {
		s := &signatures{keys: signed.NewKeys(list)}
		c.ev.Signature = c.text
		if kind, detail, _ := s.examine(c.ev); kind != c.kind || !strings.Contains(detail, c.want) {
			t.Errorf("%s: %s %s", c.name, kind, detail)
		}
		c.ev.Signature = ""
		if s.Signed+s.Reworded+s.Unsigned+s.Unproven != 1 {
			t.Errorf("%s is counted as %+v", c.name, s)
		}
	}
	machine := event(&forge.Submit{})
	machine.Anchor = "x"
	s := &signatures{keys: signed.NewKeys(list)}
	s.add(&journal.Entry{Record: &forge.Record{Events: []forge.Event{*machine, {ID: "2", Message: &forge.TimerFired{}}, *approve}}})
	if len(s.found) != 1 || s.found[0].Kind != unsigned {
		t.Errorf("found %+v", s.found)
	}
}
