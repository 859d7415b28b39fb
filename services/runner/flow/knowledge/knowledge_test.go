package knowledge

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
	s := &State{Known: []forge.Knowledge{
		{ID: "old", Content: "a cache"},
		{ID: "helped", Content: "a cache", AppliedCount: 1},
		{ID: "sure", Content: "a cache", Confidence: forge.ConfidenceHigh},
		{ID: "fits", Content: "links expire", Confidence: forge.ConfidenceLow},
		{ID: "fits best", Content: "reset links", Confidence: forge.ConfidenceLow},
	}}
	const title = "Reset links of users"
	want := []string{"fits best", "fits", "sure", "helped", "old"}
	if got := ids(s.ForGoal(title)); !slices.Equal(got, want) {
		t.Errorf("offered %q, want %q", got, want)
	}
	for i := range maxOffered {
		s.Known = append(s.Known, forge.Knowledge{ID: fmt.Sprint(i)})
	}
	if got := ids(s.ForGoal(title)); len(got) != maxOffered || got[0] != "fits best" {
		t.Errorf("offered %q", got)
	}
}

// What two goals found out is kept once, as the surer one says; what is too much goes, that
// which helped least first, and nothing that is new.
func TestLearnKeepsWhatHelps(t *testing.T) {
	s := &State{}
	var found []forge.Knowledge
	for i := range maxKnowledge {
		found = append(found, forge.Knowledge{ID: fmt.Sprint(i), Content: fmt.Sprint("thing ", i), Confidence: forge.ConfidenceMedium})
	}
	s.Learn(&forge.RunEnded{Knowledge: found, Applied: []string{"0", "0", "unknown"}})
	before := s.Known
	s.Learn(&forge.RunEnded{Knowledge: []forge.Knowledge{
		{ID: "again", Content: "THING 2", Confidence: forge.ConfidenceHigh},
		{ID: "unsure", Content: "x", Confidence: forge.ConfidenceLow},
		{ID: "new", Content: "y"},
	}})
	if len(s.Known) != maxKnowledge || s.Known[0].AppliedCount != 2 || s.Known[1].Confidence != forge.ConfidenceHigh {
		t.Errorf("%d are known, %+v", len(s.Known), s.Known[:3])
	}
	got := ids(s.Known)
	for id, want := range map[string]bool{"0": true, "1": false, "2": true, "3": false, "4": true, "again": false, "unsure": true, "new": true} {
		if slices.Contains(got, id) != want {
			t.Errorf("%s is known: %t", id, !want)
		}
	}
	if before[2].Confidence != forge.ConfidenceMedium {
		t.Error("what a view of before has was changed")
	}
}

// What has to do with an intent is found in languages that write without spaces, too, and
// by the files that both are about.
func TestRelevanceInAnyLanguage(t *testing.T) {
	s := &State{Known: []forge.Knowledge{
		{ID: "文書", Content: "文書は docs に置く"}, {ID: "検索", Content: "検索の索引は毎晩作り直される"},
	}}
	for _, past := range []forge.PastRun{
		{IntentID: "1", Title: "検索を速くする"}, {IntentID: "2", Title: "文書を書く"}, {IntentID: "3", Title: "Other", Files: []string{"search/index.go"}},
	} {
		s.Learn(&forge.RunEnded{Past: &past})
	}
	if got := ids(s.ForGoal("全文検索\n結果が遅い")); got[0] != "検索" {
		t.Errorf("offered %q first", got)
	}
	for about, want := range map[string][]forge.IntentID{
		"検索結果の並び順": {"1"}, "文書の誤字": {"2"}, "索引": nil, "Fix it\nsearch/index.go": {"3"}, "ログインをなおす": nil,
	} {
		var got []forge.IntentID
		for _, r := range s.RelevantRuns(about, "") {
			got = append(got, r.IntentID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is told of the runs %q, want %q", about, got, want)
		}
	}
}

// An intent that is no goal is told of what has words in common with it, and of
// no more than it can read.
func TestKnowledgeForAnIntent(t *testing.T) {
	s := &State{Known: []forge.Knowledge{{ID: "near", Content: "検索の索引は古い"}, {ID: "far", Content: "links expire"}}}
	if got := ids(s.ForOthers("索引を作り直す")); !slices.Equal(got, []string{"near"}) {
		t.Errorf("offered %q", got)
	}
	for i := range 2 * maxOfferedOthers {
		s.Known = append(s.Known, forge.Knowledge{ID: fmt.Sprint(i), Content: "索引"})
	}
	if got := ids(s.ForOthers("索引を作り直す")); len(got) != maxOfferedOthers || slices.Contains(got, "far") {
		t.Errorf("offered %q", got)
	}
}
