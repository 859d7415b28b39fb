package forgedir

import (
	"cmp"
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Input is what a person wrote into one file, as events to publish in this
// order. The same content always makes the same events, so publishing them
// twice is harmless. Tell what became of them with Workspace.Decided.
type Input struct {
	Path   string // from the repository's root
	Intent forge.IntentID
	Events []forge.Event

	rel     string
	content digest
	seq     uint64         // of the view that an edit was compared to
	lines   map[string]int // of fields, to report refusals
	fields  []string       // that each event is about
}

// Draft returns the intent that the input submits, or nil if it edits one.
func (in *Input) Draft() *forge.Intent {
	if len(in.Events) != 1 {
		return nil
	}
	if submit := forge.As[*forge.Submit](in.Events[0].Message); submit != nil {
		return &submit.Intent
	}
	return nil
}

func (in *Input) problem(field, reason, hint string) Problem {
	return Problem{Path: in.Path, Line: in.lines[field], Field: field, Reason: reason, Hint: hint}
}

// refused says that one of the events was refused, and what became of the
// changes that the events before it carried.
func (in *Input) refused(event int, r forge.Ruling, taken []string) Problem {
	field := fileField(r.Field)
	if field == "" {
		field = in.fields[event]
	}
	hint := ""
	switch {
	case in.Draft() != nil:
		if field == "id" && path.Base(in.rel) != string(in.Intent)+".md" {
			hint = "the file's name makes the id " + string(in.Intent)
		}
	case len(taken) > 0:
		hint = strings.Join(taken, ", ") + " was imported; " + undo
	case len(in.Events) > 1:
		hint = "nothing of this version was imported; " + undo
	default:
		hint = undo
	}
	return in.problem(field, strings.TrimPrefix(r.Reason, cmp.Or(r.Field, field)+": "), hint)
}
