package phrase

import (
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// TestAsked: who asked and by what way is said in words that need no knowledge
// of the program, and never by the id of a message alone.
func TestAsked(t *testing.T) {
	for want, c := range map[string]struct {
		source forge.Source
		origin document.Origin
		parent forge.IntentID
		by     string
		way    string
	}{
		"Asked for by ada, at the command line.": {forge.SourceHuman, document.Origin{System: "cli", EventID: "J9aXqk2"}, "", "ada", "at the command line"},
		"Asked for by ada, with the file web/a@b.md.": {
			forge.SourceHuman, document.Origin{System: "draft", EventID: "web/a@b.md@0f3c", Actor: "ada"}, "", "ada", "with the file web/a@b.md",
		},
		"Asked for by ada, with the file.":   {forge.SourceHuman, document.Origin{System: "draft", EventID: "odd"}, "", "ada", "with the file"},
		"Asked for by ada, through gateway.": {forge.SourceHuman, document.Origin{System: "gateway", EventID: "k#1", Actor: "ada"}, "", "ada", "through gateway"},
		"Asked for by ada, at the command line. Words of bob, mei were added since.": {
			forge.SourceHuman, document.Origin{System: "cli"}, "", "ada", "at the command line",
		},
		"Asked for by a person.":      {forge.SourceHuman, document.Origin{}, "", "", ""},
		"Asked for by the system ci.": {forge.SourceSystem, document.Origin{System: "ci"}, "", "ci", ""},
		`Asked for by the system ci, for "<b>" as it says; it calls this request "build/7".`: {
			forge.SourceSystem, document.Origin{System: "ci", EventID: "build/7", Actor: "<b>"}, "", "ci (claimed: <b>)", "",
		},
		"Asked for by ada, as a part of big: the plan of that split it off.": {
			forge.SourceHuman, document.Origin{System: "cli", EventID: "part/small"}, "big", "ada", "",
		},
		"No person asked for exactly this: pfl-forge proposed it, from what it saw in work that was done here.": {
			forge.SourceReflection, document.Origin{System: "reflection", EventID: "r1"}, "", "", "",
		},
	} {
		d := document.Detail{Origin: c.origin}
		d.Source, d.Parent, d.Requester = c.source, c.parent, c.by
		if strings.Contains(want, "added") {
			d.Requesters = []document.Identity{{Name: "ada", Proven: true}, {Name: "bob", Proven: true}, {Name: "mei", Proven: true}, {Name: "eve"}}
		}
		if got := Asked(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := Way(d); got != c.way {
			t.Errorf("%q: the way is %q, want %q", want, got, c.way)
		}
	}
}
