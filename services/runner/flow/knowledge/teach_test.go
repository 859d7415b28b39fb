package knowledge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// lesson returns a piece as a person writes it.
func lesson(content string) *forge.Knowledge {
	return &forge.Knowledge{Type: forge.KnowledgeLesson, Confidence: forge.ConfidenceHigh, Content: content}
}

// found returns the end of a run that found something.
func found(id, content string) *forge.RunEnded {
	k := lesson(content)
	k.ID, k.Author = id, "somebody else"
	return &forge.RunEnded{Knowledge: []forge.Knowledge{*k}}
}

func TestTeach(t *testing.T) {
	s := &State{}
	now := time.Unix(100, 0)
	teach := func(m *forge.Teach, want forge.Decision) string {
		t.Helper()
		before := fmt.Sprint(*s)
		d, err := s.Teach("ada", m, now)
		if d != want || (err == nil) != (want == forge.Applied) || d != forge.Applied && fmt.Sprint(*s) != before {
			t.Fatalf("%+v: %s, %v; want %s", m, d, err, want)
		}
		return fmt.Sprint(err)
	}
	s.Learn(found("reset/k1", "links never expire"))
	teach(&forge.Teach{Knowledge: lesson("tests need a clock")}, forge.Applied)
	if got := ids(s.Known); !slices.Equal(got, []string{"reset/k1", "k1"}) || s.Known[0].Author != "" || s.Known[1].Author != "ada" ||
		!s.Known[1].CreatedAt.Equal(now) {
		t.Fatalf("known: %+v", s.Known)
	}

	for _, bad := range []struct {
		m    *forge.Teach
		want string
	}{
		{&forge.Teach{}, "is missing"},
		{&forge.Teach{ID: "k9", Knowledge: lesson("x")}, `"k9"`},
		{&forge.Teach{ID: "k9"}, `"k9"`},
		{&forge.Teach{Knowledge: lesson(" ")}, "knowledge.content: is empty"},
		{&forge.Teach{Knowledge: lesson("a\x1b[2J")}, "control character"},
		{&forge.Teach{Knowledge: lesson("a\x00")}, "control character"},
		{&forge.Teach{Knowledge: lesson("\xff")}, "not UTF-8"},
		{&forge.Teach{Knowledge: lesson(strings.Repeat("a", MaxContent+1))}, "at most 1000"},
		{&forge.Teach{Knowledge: &forge.Knowledge{Content: "x", Type: "rumour", Confidence: "high"}}, `knowledge.type: is "rumour"`},
		{&forge.Teach{Knowledge: &forge.Knowledge{Content: "x", Type: "lesson", Confidence: "sure"}}, `knowledge.confidence: is "sure"`},
		{&forge.Teach{Knowledge: &forge.Knowledge{Content: "x", Type: "lesson", Confidence: "low", Category: "a\nb"}}, "knowledge.category"},
		{&forge.Teach{Knowledge: &forge.Knowledge{
			Content: "x", Type: "lesson", Confidence: "low", ExampleFile: strings.Repeat("a", 301),
		}}, "knowledge.example_file"},
		{&forge.Teach{Knowledge: lesson("Tests need a clock")}, "known already, as k1"},
		{&forge.Teach{ID: "reset/k1", Knowledge: lesson("tests need a clock")}, "known already, as k1"},
	} {
		if got := teach(bad.m, forge.Refused); !strings.Contains(got, bad.want) {
			t.Errorf("%+v: %s; want %s", bad.m, got, bad.want)
		}
	}

	// What is corrected keeps its id and its use; the wrong words do not come back beside it.
	s.Learn(&forge.RunEnded{Applied: []string{"reset/k1"}})
	teach(&forge.Teach{ID: "reset/k1", Knowledge: lesson("links expire after a day")}, forge.Applied)
	s.Learn(found("other/k1", "Links never expire"))
	if k := s.Known[0]; len(s.Known) != 2 || k.ID != "reset/k1" || k.AppliedCount != 1 || k.Author != "ada" || k.Content != "links expire after a day" {
		t.Fatalf("known: %+v", s.Known)
	}

	// What is forgotten does not come back from what agents find, and does if a person adds it.
	before := s.Known
	teach(&forge.Teach{ID: "reset/k1"}, forge.Applied)
	s.Learn(found("more/k1", "LINKS expire after a day"))
	if got := ids(s.Known); !slices.Equal(got, []string{"k1"}) || len(before) != 2 || before[0].ID != "reset/k1" {
		t.Fatalf("known: %q", got)
	}
	teach(&forge.Teach{Knowledge: lesson("links expire after a day")}, forge.Applied)
	teach(&forge.Teach{ID: "k2"}, forge.Applied)
	teach(&forge.Teach{Knowledge: lesson("links expire after a day")}, forge.Applied)
	s.Learn(found("yet/k1", "links expire after a day"))
	if got := ids(s.Known); !slices.Equal(got, []string{"k1", "k3"}) {
		t.Errorf("known: %q", got)
	}
}

// What people wrote is the last to go when too much is known, and what is
// remembered as forgotten is bounded.
func TestTaughtIsKept(t *testing.T) {
	s := &State{}
	if _, err := s.Teach("ada", &forge.Teach{Knowledge: lesson("by a person")}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxKnowledge {
		s.Learn(found(fmt.Sprintf("a/k%d", i), fmt.Sprint("thing ", i)))
	}
	if len(s.Known) != maxKnowledge || s.Known[0].ID != "k1" {
		t.Errorf("%d are known, first %s", len(s.Known), s.Known[0].ID)
	}
	for i := range 2 * maxForgotten {
		s.Learn(found(fmt.Sprintf("b/k%d", i), fmt.Sprint("other ", i)))
		if _, err := s.Teach("ada", &forge.Teach{ID: s.Known[len(s.Known)-1].ID}, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.Forgotten) != maxForgotten {
		t.Errorf("%d are remembered as forgotten", len(s.Forgotten))
	}
}
