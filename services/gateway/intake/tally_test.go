package intake_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// TestTally: an event counts once under a key however often it is noted, with the
// most that was noted for it there, and only on the day on which the store had it.
func TestTally(t *testing.T) {
	var tally intake.Tally
	at := func(text string) time.Time {
		t.Helper()
		when, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	const key, next = "2026-05-04 day", "2026-05-05 day"
	used := func(key, event string, count int, usd float64) {
		t.Helper()
		if n, sum := tally.Used(event)(key); n != count || sum != usd {
			t.Errorf("under %s besides %q are %d for $%v, want %d for $%v", key, event, n, sum, count, usd)
		}
	}
	for range 3 { // a delivery that comes again, or an entry that is read again
		tally.Add("a", at("2026-05-04 23:59:59"), []intake.Count{{Key: key, USD: 0.1}})
	}
	used(key, "", 1, 0.1)
	used(key, "a", 0, 0)
	for range 2 {
		tally.Add("b", at("2026-05-04 00:00:00"), []intake.Count{{Key: key, USD: 0.2}, {Key: "2026-05-04 other"}})
	}
	used(key, "", 2, 0.3) // to the cent
	tally.Add("a", at("2026-05-04 12:00:00"), []intake.Count{{Key: key, USD: 5}})
	tally.Add("a", at("2026-05-04 12:00:00"), []intake.Count{{Key: key, USD: 1}})
	used(key, "", 2, 5.2)
	if !tally.Has("a", []intake.Count{{Key: key, USD: 5}}) || tally.Has("a", []intake.Count{{Key: key, USD: 6}}) || tally.Has("c", []intake.Count{{Key: key}}) {
		t.Error("what is counted is not known, or what is not")
	}

	// One that was meant for a day, and was stored on the next one.
	tally.Add("c", at("2026-05-05 00:00:00"), []intake.Count{{Key: key}})
	used(key, "", 2, 5.2)
	used(next, "", 0, 0)
	if tally.Has("c", []intake.Count{{Key: key}}) {
		t.Error("it counts although it was stored on another day")
	}
	tally.Add("c", at("2026-05-05 00:00:00"), []intake.Count{{Key: next}})
	used(next, "", 1, 0)
	tally.Add("d", at("2026-05-06 08:00:00"), nil)
	used(key, "", 0, 0) // forgotten
	used(next, "", 1, 0)
}

// TestNothingKnownLetsNothingLimitedIn: while it is not known what was let in
// before, what a limit counts is refused, and the rest goes on. A limit for
// each day counts all that the rules of its file let in.
func TestNothingKnownLetsNothingLimitedIn(t *testing.T) {
	own, err := intake.ParseNarrowing("x", []byte("rules: [{do: ask, limit: {per: author, count: 9}}]"))
	if err != nil {
		t.Fatal(err)
	}
	const free, few = "{name: free, do: ask, project: shop}", "{name: few, do: ask, project: shop, limit: {per: author, count: 9}}"
	for _, c := range []struct {
		rules string
		own   *intake.Rules
		in    bool
	}{
		{"rules: [" + free + "]", nil, true},
		{"rules: [" + free + ", " + few + "]", nil, true},
		{"rules: [" + few + "]", nil, false},
		{"rules: [" + free + "]", own, false},
		{"rules: [" + free + ", " + strings.Replace(few, "author", "day", 1) + "]", nil, false},
		{"rules: [{do: ignore}, " + few + "]", nil, true},
	} {
		t1 := issue()
		d := parse(t, c.rules).Decide(&t1, c.own, nil, now)
		if (d.Refused == "") != c.in || d.Uncounted == c.in || !c.in && !strings.Contains(d.Explain(), "refused: a limit counts this") {
			t.Errorf("%s: %q\n%s", c.rules, d.Refused, d.Explain())
		}
	}
}

// TestRenamedAuthorsCountOn: whoever has another name at the forge by now
// counts under the same keys.
func TestRenamedAuthorsCountOn(t *testing.T) {
	rules := parse(t, "rules: [{do: ask, project: shop, limit: {per: author, count: 1}}]")
	before, after := issue(), issue()
	after.Author.Login = "somebody-else"
	was, is := rules.Decide(&before, nil, unused, now), rules.Decide(&after, nil, unused, now)
	if len(was.Limits) != 1 || was.Limits[0].Key != is.Limits[0].Key {
		t.Errorf("counted under %+v, and then %+v", was.Limits, is.Limits)
	}
}
