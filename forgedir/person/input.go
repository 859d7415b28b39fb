package person

import (
	"cmp"
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Undo is the hint to a change that is not allowed.
const Undo = "undo it, or remove the file to have it written again"

// Input holds the requests of one file as events, to publish in this order. The same
// content always makes the same events, so publishing them twice is harmless.
type Input struct {
	Path   string // from the repository's root
	Intent forge.IntentID
	Events []forge.Event

	// Source is for the packages that read and decide inputs.
	Source Source
}

// Source identifies the version of a file that an input was read from.
type Source struct {
	Rel     string // the file's path as package layout has it
	Content disk.Digest
	// Seq is the journal sequence of the view that an edit was compared to; 0 for a
	// draft.
	Seq uint64
	// Positions are the places of fields in the file, for problems that show up later; nil
	// until the file is decoded.
	Positions *strictyaml.Positions
	// BodyLine is the line of a draft's body, which is no field of its front matter; 0 for
	// an edit.
	BodyLine int
	// Fields has the field that each event is about.
	Fields []string
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

// Problem returns a problem of a field of the file, with its line if that is known.
func (in *Input) Problem(field, reason, hint string) Problem {
	return Problem{Path: in.Path, Line: in.Source.line(field), Field: field, Reason: reason, Hint: hint}
}

// line returns the place of a field, counted from 1; 0 if the file does not have it.
func (s *Source) line(field string) int {
	switch {
	case field == "body" && s.BodyLine > 0:
		return s.BodyLine
	case field == "" || s.Positions == nil || !s.Positions.Has(field):
		return 0
	}
	return s.Positions.Errorf(field, "").Line
}

// Refused returns the problem that one of the events was refused. Taken are the
// fields of the events before it, if these were applied.
func (in *Input) Refused(event int, r forge.Ruling, taken []string) Problem {
	field := FieldInFiles(r.Field)
	if field == "" {
		field = in.Source.Fields[event]
	}
	hint := ""
	switch {
	case in.Draft() != nil:
		if field == "id" && path.Base(in.Source.Rel) != string(in.Intent)+".md" {
			hint = "the file's name makes the id " + string(in.Intent)
		}
	case len(taken) > 0:
		hint = strings.Join(taken, ", ") + " was imported; " + Undo
	case len(in.Events) > 1:
		hint = "nothing of this version was imported; " + Undo
	default:
		hint = Undo
	}
	return in.Problem(field, strings.TrimPrefix(r.Reason, cmp.Or(r.Field, field)+": "), hint)
}

// fieldsInFiles are the fields of an intent that have another name in files.
var fieldsInFiles = map[string]string{
	"goal.history_context": "goal.history_context_size",
	"goal.tools":           "goal.allowed_tools",
	"goal.system_prompt":   "goal.append_system_prompt",
	"goal.judge_prompt":    "goal.judgment_prompt",
	"goal.history_file":    "goal.history",
	"goal.knowledge_file":  "goal.knowledge",
	"goal.log_dir":         "goal.raw_log_dir",
}

// FieldInFiles returns the name in files of an intent's field, or of an entry of one,
// such as goal.allowed_tools[0] for goal.tools[0].
func FieldInFiles(field string) string {
	list, index, entry := strings.Cut(field, "[")
	name, ok := fieldsInFiles[list]
	switch {
	case !ok:
		return field
	case entry:
		return name + "[" + index
	}
	return name
}
