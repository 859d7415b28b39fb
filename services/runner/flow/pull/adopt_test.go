package pull_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
)

// TestApprovedByTheirOwn: a forge takes pfl-forge for who pushed what became of a person's
// commit, and so counts an approval of that person as one of another. It is not merged for
// that: only with one of another person, or with none where the forge asks for none.
func TestApprovedByTheirOwn(t *testing.T) {
	approved := func(by ...string) (list []forge.PullReview) {
		for _, who := range by {
			list = append(list, forge.PullReview{Person: who, Account: who + "-1", May: true, Verdict: forge.PullApproved, Commit: "h1"})
		}
		return list
	}
	for name, c := range map[string]struct {
		reviews []forge.PullReview
		barred  []string
		want    pull.Status
	}{
		"nothing is asked for":        {nil, []string{"ada"}, pull.Ready},
		"by who adopted it":           {approved("ada"), []string{"ada"}, pull.Blocked},
		"by its author, as they like": {approved("EVE"), []string{"ada", "eve"}, pull.Blocked},
		"by both":                     {approved("ada", "eve"), []string{"ada", "eve"}, pull.Blocked},
		"by another one":              {approved("bob"), []string{"ada"}, pull.Ready},
		"by another one as well":      {approved("ada", "bob"), []string{"ada"}, pull.Ready},
		"where requesters may":        {approved("ada"), nil, pull.Ready},
	} {
		o := pull.Ours{Branch: "b", Base: "main", Head: "h1", Patch: "p", Number: 1, Barred: c.barred}
		seen := &forge.PullRequest{
			Number: 1, Branch: "b", Base: "main", Head: "h1", State: forge.PullOpen, Reviews: c.reviews,
			Checks: []forge.PullCheck{{Name: "build", State: forge.PullCheckPassed}},
		}
		p := &forge.PullPolicy{By: "forge"}
		if got := o.Status(p, seen); got != c.want {
			t.Errorf("%s: it is %s, want %s", name, got, c.want)
		}
		if words := o.Words(p, seen); c.want == pull.Blocked && !strings.Contains(words, "another person has to approve") {
			t.Errorf("%s: it says %q", name, words)
		}
	}
}

// TestBarredBefore: a commit that is adopted on top of an adopted one has that one as well.
func TestBarredBefore(t *testing.T) {
	before := &forge.Adoption{Author: "eve <eve@example.com>", Barred: []string{"ada", "eve", "eve@example.com"}}
	next := &forge.Adoption{Author: "zoe <7+zoe@example.com>"}
	if got := pull.Barred(false, []string{"cat"}, next, before); got != nil {
		t.Errorf("where requesters may approve, these may not: %q", got)
	}
	next.Barred = pull.Barred(true, []string{"cat"}, next, before)
	if got := strings.Join(next.Barred, " "); got != "cat zoe 7+zoe@example.com ada eve eve@example.com" {
		t.Errorf("these may not approve at the forge: %s", got)
	}
	but := []forge.Identity{{Name: "Ada"}, {Name: "cat"}}
	if got := strings.Join(pull.Authors(next, but), " "); got != "zoe 7+zoe@example.com eve eve@example.com" {
		t.Errorf("these count as its authors: %s", got)
	}
}
