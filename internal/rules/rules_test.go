package rules_test

import (
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// TestVersionOfARecord writes and reads the version. The first is not written,
// since programs before it refuse records that have one.
func TestVersionOfARecord(t *testing.T) {
	for by, want := range map[rules.Version]int{0: 0, rules.First: 0, 2: 2, 9: 9} {
		rec := forge.Record{Rules: 5}
		by.Stamp(&rec)
		if rec.Rules != want || rules.Of(&rec) != max(by, rules.First) {
			t.Errorf("version %d is written as %d and read as %d", by, rec.Rules, rules.Of(&rec))
		}
	}
	if got := rules.Of(&forge.Record{Rules: -3}); got != rules.First {
		t.Errorf("a record with a number that is none is of version %d", got)
	}
}

// TestActive takes the newest version that all runners know, and never one that
// this program does not.
func TestActive(t *testing.T) {
	newer := rules.Newest + 1
	for _, test := range []struct {
		known []rules.Version
		want  rules.Version
	}{
		{nil, rules.First},
		{[]rules.Version{0}, rules.First}, // of the time before there were versions
		{[]rules.Version{rules.Newest}, rules.Newest},
		{[]rules.Version{newer, rules.Newest}, rules.Newest},
		{[]rules.Version{newer, newer}, rules.Newest},
		{[]rules.Version{newer, 0, rules.Newest}, rules.First},
		{[]rules.Version{rules.Newest, -7}, rules.First},
	} {
		if got := rules.Active(test.known); got != test.want {
			t.Errorf("of runners that know %v the active version is %d, want %d", test.known, got, test.want)
		}
	}
}

// TestChanges has every version since the first change something, and say what.
func TestChanges(t *testing.T) {
	last := rules.First
	for _, c := range rules.Changes() {
		if c.Name == "" || c.Why == "" || c.Since < last || c.Since > last+1 || c.Since == rules.First {
			t.Errorf("%+v does not follow on version %d", c, last)
		}
		if last = c.Since; !c.Since.Has(c) || (c.Since - 1).Has(c) {
			t.Errorf("%s is not there from version %d on", c.Name, c.Since)
		}
	}
	if last != rules.Newest {
		t.Errorf("nothing changes with version %d, which is the newest", rules.Newest)
	}
}
