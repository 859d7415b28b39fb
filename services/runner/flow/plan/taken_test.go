package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// text returns an intent with a body.
func text(body string) *forge.Intent {
	return &forge.Intent{Settings: forge.Settings{Title: "title", Body: body}}
}

// A text that is another one is told, and one that is the same again is not, each
// once; and whoever edits for ever, and takes it back each time, is bounded, and
// leaves no other text behind that passes for the one that was taken.
func TestTaken(t *testing.T) {
	var s Taken
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	s.Take(text("one"))
	if s.Again(text("one"), at) || s.Words("forge") != "" || s.Beside("why", "forge") != "why" {
		t.Errorf("a repetition is told as %+v", s)
	}
	if !s.Again(text("two"), at) || s.Again(text("two"), at) || !strings.Contains(s.Words("forge"), "edited at forge") {
		t.Errorf("an edit is told as %+v", s)
	}
	words := s.Words("forge")
	if got := s.Beside("", "forge"); got != words {
		t.Errorf("without a reason it is %q", got)
	}
	if got := s.Beside("why\nmore", "forge"); got != "why; "+words+"\nmore" {
		t.Errorf("beside a reason it is %q", got)
	}
	if !s.Again(text("one"), at) || s.Later != "" || s.Words("forge") != "" {
		t.Errorf("what was taken back is %+v", s)
	}
	for i := range 100 {
		s.Again(text(fmt.Sprint(i)), at)
		s.Again(text("one"), at)
	}
	if s.Later == "" || s.Changes != maxTextChanges {
		t.Errorf("after many edits it is %+v", s)
	}
}
