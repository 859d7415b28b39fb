package others

import (
	"fmt"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// TestWhoElse: told are people who have the verb in this project now, each
// once, and of approvers those whose approval counts.
func TestWhoElse(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	in := func(name, project string, roles ...tokens.Role) tokens.Token {
		return tokens.Token{Name: "entry of " + name, Person: name, Projects: map[string][]tokens.Role{project: roles}}
	}
	former, ci := in("former", "shop", tokens.Approver), in("", "shop", tokens.Approver, tokens.Requester, tokens.Operator)
	former.Expires, ci.System = now, "ci"
	entries := []tokens.Token{
		in("zoe", "shop", tokens.Approver), in("bob", "shop", tokens.Approver), in("BOB", "shop", tokens.Approver), in("ada", "shop", tokens.Approver),
		in("eve", "*", tokens.Approver), in("vic", "shop", tokens.Viewer), in("ban", "bank", tokens.Approver), in("rex", "shop", tokens.Requester),
		in("ops", "shop", tokens.Operator), former, ci,
	}
	for _, c := range []struct {
		verb      tokens.Verb
		approvers string
		without   string
		want      string
	}{
		{tokens.Approve, "", "ada", "bob eve zoe"},
		{tokens.Approve, "", "ADA Eve", "bob zoe"},
		{tokens.Approve, "bob Zoe", "ada", "bob"}, // as it is written
		{tokens.Approve, "nobody", "", ""},
		{tokens.Answer, "bob", "ada", "bob eve ops rex zoe"}, // which is about approvals alone
		{tokens.Retry, "", "", "ops"},
	} {
		d := Decision{"shop", c.verb, strings.Fields(c.approvers), strings.Fields(c.without)}
		if got := strings.Join(Of(entries, d, now), " "); got != c.want {
			t.Errorf("%+v: %s, want %s", d, got, c.want)
		}
	}
}

// TestVerb: each wait ends by a verb that people have.
func TestVerb(t *testing.T) {
	for w, want := range map[forge.Waiting]tokens.Verb{
		forge.WaitingApproval: tokens.Approve, forge.WaitingClarification: tokens.Answer, forge.WaitingPaused: tokens.Resume,
		forge.WaitingBudget: tokens.Retry, forge.WaitingFailed: tokens.Retry,
	} {
		if got := Verb(w); got != want {
			t.Errorf("%s: %s", w, got)
		}
	}
}

// TestWords: however many there are, a sentence stays one.
func TestWords(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("p%02d", i))
	}
	for n, want := range map[int]string{0: "nobody else in", 1: "p00", 8: "p00, p01, p02, p03, p04, p05, p06, p07", 20: "p07 and 12 more"} {
		if got := Words(names[:n]); !strings.Contains(got, want) {
			t.Errorf("%d: %s", n, got)
		}
	}
}
