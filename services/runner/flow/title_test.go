package flow_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/pfl-forge/pfl-forge"
)

// The only task of an intent is merged under the intent's title, several under their own.
func TestTitlesOfCommits(t *testing.T) {
	s := newScript()
	datadriven.RunTestFromString(t, "submit a title=Fix\n----\n\nanalyze a tasks=(one)\n----\n\nimplement a-001\n----\n\n"+
		"submit b title=Extend\n----\n\nanalyze b tasks=(one,two)\n----\n\nimplement b-001\n----\n\nimplement b-002\n----\n",
		func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s.play(t, d)
			return ""
		})
	want := map[forge.TaskID]string{"a-001": s.intents["a"].Summary().Title, "b-001": "one", "b-002": "two"}
	for _, c := range s.open {
		if got := c.Rebase().Title; c.Attempt.Step != forge.StepRebase || got != want[c.Attempt.Task] {
			t.Errorf("%s has the title %q, want %q", c.ID(), got, want[c.Attempt.Task])
		}
	}
	if len(s.open) != len(want) {
		t.Errorf("%d commands are open, want %d", len(s.open), len(want))
	}
}
