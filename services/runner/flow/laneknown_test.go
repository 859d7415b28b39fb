package flow

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

func ids(list []forge.Knowledge) []string {
	var out []string
	for i := range list {
		out = append(out, list[i].ID)
	}
	return out
}

// A goal is offered what has most words of its title, of that the most certain, then what
// helped most, then the newest; and no more than it can read.
func TestKnowledgeForAGoal(t *testing.T) {
	l := &Lane{known: []forge.Knowledge{
		{ID: "old", Content: "a cache"},
		{ID: "helped", Content: "a cache", AppliedCount: 1},
		{ID: "sure", Content: "a cache", Confidence: forge.ConfidenceHigh},
		{ID: "fits", Content: "links expire", Confidence: forge.ConfidenceLow},
		{ID: "fits best", Content: "reset links", Confidence: forge.ConfidenceLow},
	}}
	m := &member{title: "Reset links of users"}
	want := []string{"fits best", "fits", "sure", "helped", "old"}
	if got := ids(l.knowledgeFor(m)); !slices.Equal(got, want) {
		t.Errorf("offered %q, want %q", got, want)
	}
	for i := range maxOffered {
		l.known = append(l.known, forge.Knowledge{ID: fmt.Sprint(i)})
	}
	if got := ids(l.knowledgeFor(m)); len(got) != maxOffered || got[0] != "fits best" {
		t.Errorf("offered %q", got)
	}
}

// What two goals found out is kept once, as the surer one says; what is too much goes, that
// which helped least first, and nothing that is new.
func TestLaneKeepsWhatHelps(t *testing.T) {
	l := &Lane{}
	var found []forge.Knowledge
	for i := range maxKnowledge {
		found = append(found, forge.Knowledge{ID: fmt.Sprint(i), Content: fmt.Sprint("thing ", i), Confidence: forge.ConfidenceMedium})
	}
	l.know(&forge.RunEnded{Knowledge: found, Applied: []string{"0", "0", "unknown"}})
	before := l.known
	l.know(&forge.RunEnded{Knowledge: []forge.Knowledge{
		{ID: "again", Content: "THING 2", Confidence: forge.ConfidenceHigh},
		{ID: "unsure", Content: "x", Confidence: forge.ConfidenceLow},
		{ID: "new", Content: "y"},
	}})
	if len(l.known) != maxKnowledge || l.known[0].AppliedCount != 2 || l.known[1].Confidence != forge.ConfidenceHigh {
		t.Errorf("%d are known, %+v", len(l.known), l.known[:3])
	}
	got := ids(l.known)
	for id, want := range map[string]bool{"0": true, "1": false, "2": true, "3": false, "4": true, "again": false, "unsure": true, "new": true} {
		if slices.Contains(got, id) != want {
			t.Errorf("%s is known: %t", id, !want)
		}
	}
	if before[2].Confidence != forge.ConfidenceMedium {
		t.Error("what a view of before has was changed")
	}
}
