package approval_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
)

// Each row is a person who asks for changes.
func TestWish(t *testing.T) {
	wish := func(by, hash, words string) approval.Wished {
		return approval.Wished{Hash: hash, Wish: forge.Wish{Person: by, Words: words}}
	}
	barred := approval.Rules{Approvals: forge.Approvals{Count: 2, NotRequester: true}, Requesters: requesters}
	named := approval.Rules{Approvers: []string{"eve"}, Requesters: requesters}
	for _, c := range []struct {
		about string
		wish  approval.Wished
		rules approval.Rules
		by    rules.Version
		want  string
	}{
		{"whoever may approve", wish("eve", "h", "w"), named, rules.Newest, ""},
		{"whoever asked for it", wish("ann", "h", "w"), barred, rules.Newest, ""},
		{"another one", wish("ann", "h", "w"), named, rules.Newest, "may not approve; those who may are: eve (policy.approvers)"},
		{"nobody, where it matters who", wish("", "h", "w"), barred, rules.Newest, "with the name of a person"},
		{"nobody, where it does not", wish("", "h", "w"), approval.Rules{}, rules.Newest, ""},
		{"no hash", wish("eve", "", "w"), named, rules.Newest, "hash: is missing"},
		{"no words", wish("eve", "h", ""), named, rules.Newest, "words: is empty"},
		{"many words", wish("eve", "h", strings.Repeat("w", 16<<10+1)), named, rules.Newest, "words: has 16385 bytes; at most 16384"},
		{"as many as there may be", wish("eve", "h", strings.Repeat("w", 16<<10)), named, rules.Newest, ""},
		{"an older runner", wish("eve", "h", "w"), named, 3, "a runner of an older version is still there"},
	} {
		err := c.wish.Check(&c.rules, c.by)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.about, err, c.want)
		}
	}
}

// The first wish about a hash is heard. The same again changes nothing, another
// one and a late approval are told of it.
func TestFirstWishWins(t *testing.T) {
	heard := approval.Wished{Hash: "h", Wish: forge.Wish{Person: "ann", Words: "shorter"}}
	none := approval.Wished{}
	for _, c := range []struct {
		about string
		first *approval.Wished
		other approval.Wished
		want  forge.Decision
	}{
		{"the same again", &heard, heard, forge.Ignored},
		{"of another person", &heard, approval.Wished{Hash: "h", Wish: forge.Wish{Person: "bob", Words: "shorter"}}, forge.Refused},
		{"in other words", &heard, approval.Wished{Hash: "h", Wish: forge.Wish{Person: "ann", Words: "longer"}}, forge.Refused},
		{"an approval", &heard, approval.Wished{Hash: "h"}, forge.Refused},
		{"of something else", &heard, approval.Wished{Hash: "i", Wish: heard.Wish}, forge.Applied},
		{"none was heard", &none, approval.Wished{}, forge.Applied},
	} {
		decision, err := c.first.Again(&c.other)
		if decision != c.want || (err == nil) != (c.want == forge.Applied) {
			t.Errorf("%s: %s, %v, want %s", c.about, decision, err, c.want)
		}
		if decision == forge.Refused && !strings.Contains(err.Error(), `"ann" asked for changes of h meanwhile`) {
			t.Errorf("%s: %v", c.about, err)
		}
	}
}
