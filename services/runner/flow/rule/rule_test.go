package rule_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/claimtest"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// TestPauses: pauses double with each failure in a row, are thirty times as
// long for what is busy, and the patience with replicas is bounded.
func TestPauses(t *testing.T) {
	for errors, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := rule.TryAgain.Pause(time.Second, errors); got != want {
			t.Errorf("after %d failures %s, want %s", errors, got, want)
		}
		if got := rule.TryLater.Pause(time.Second, errors); got != 30*want {
			t.Errorf("later, after %d failures %s, want %s", errors, got, 30*want)
		}
	}
	for waits, want := range map[int]time.Duration{0: 15 * time.Second, 1: 30 * time.Second, 2: time.Minute, 6: 15 * time.Minute, 1000: 15 * time.Minute} {
		if got := rule.Patience(waits); got != want {
			t.Errorf("after %d answers %s, want %s", waits, got, want)
		}
	}
}

// TestElsewhere: a reason that may lie in the replica has the next attempt made
// by any, by the rules that know of that.
func TestElsewhere(t *testing.T) {
	for reason, failure := range rule.Failures {
		want := forge.ReplicaID("r1")
		if failure.Elsewhere {
			want = ""
		}
		if got := failure.For(rules.OtherReplica.Since, "r1"); got != want {
			t.Errorf("%s: the next one is for %q, want %q", reason, got, want)
		}
		if got := failure.For(rules.OtherReplica.Since-1, "r1"); got != "r1" {
			t.Errorf("%s: by former rules the next one is for %q", reason, got)
		}
		if rule.GivesUp(reason) != (failure.Then == rule.AskPerson) {
			t.Errorf("%s: whether it gives up is not what its row says", reason)
		}
	}
}

// TestVerdict: claims that show that all is met leave nothing to say; of each
// kind of lie something is said about the entry that it is of, or the claims
// have no evidence of anything that the change did.
func TestVerdict(t *testing.T) {
	asked := []string{"it greets", "it is tested"}
	if weighed, said, found := rule.Verdict("Requirement", asked, claimtest.Met(asked), 0.7); len(weighed) != 2 || len(said)+len(found) > 0 {
		t.Errorf("honest claims: %v, %q, %q", weighed, said, found)
	}
	for _, way := range claimtest.Ways() {
		weighed, said, found := rule.Verdict("Requirement", asked, claimtest.Lie(asked, way), 0.7)
		if len(said)+len(found) == 0 && rule.Stands(weighed) {
			t.Errorf("%s: nothing is said, and it stands", way)
		}
		for _, line := range append(said, found...) {
			if !strings.HasPrefix(line, "Requirement ") {
				t.Errorf("%s: %q", way, line)
			}
		}
		for i := range weighed {
			if weighed[i].Text != asked[i] {
				t.Errorf("%s: the claims are not in the order of what was asked: %+v", way, weighed)
			}
		}
	}
}

// TestVerdictIsBounded: what an agent wrote is kept at a size that every record
// can have, and is cut between characters.
func TestVerdictIsBounded(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	claims := claimtest.Met([]string{"one"})
	claims[0].Note = long
	evidence := claims[0].Evidence[0]
	evidence.Quote, evidence.Ref, evidence.Reason = long, long, long
	claims[0].Evidence = nil
	for range 50 {
		claims[0].Evidence = append(claims[0].Evidence, evidence)
	}
	weighed, _, _ := rule.Verdict("Criterion", []string{"one"}, claims, 0.7)
	got := &weighed[0]
	if len(got.Note) > 1000 || len(got.Evidence) > 10 || !utf8.ValidString(got.Note) {
		t.Errorf("a note of %d bytes, %d citations", len(got.Note), len(got.Evidence))
	}
	for _, e := range got.Evidence {
		if len(e.Quote) > 300 || len(e.Ref) > 300 || len(e.Reason) > 300 || !utf8.ValidString(e.Quote) {
			t.Errorf("a citation of %d, %d and %d bytes", len(e.Quote), len(e.Ref), len(e.Reason))
		}
	}
}

// TestFirstLine: a reason is one line of at most 200 bytes, with a sign of what is left out.
func TestFirstLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "one\n": "one", "one\ntwo": "one ...", strings.Repeat("x", 201): strings.Repeat("x", 200) + " ...",
		strings.Repeat("x", 199) + "ä": strings.Repeat("x", 199) + " ...",
	} {
		if got := rule.FirstLine(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
