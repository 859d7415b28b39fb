// Package trailers has the lines at the end of a commit's message by which it
// says which task it is the change of, who asked for that and who approved it.
//
// An implementer writes them into the one commit of a task, a gateway into what
// a forge merges by its own, and whoever compares a branch with the journals
// reads them. They prove nothing: whoever can push can write them.
package trailers

import (
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// The names of the trailers.
const (
	Project   = "Forge-Project"
	Intent    = "Forge-Intent"
	Task      = "Forge-Task"
	Requester = "Forge-Requester"
	Claimed   = "Forge-Requester-Claimed"
	Approver  = "Forge-Approver"
)

// maxValue bounds the value of a trailer, in characters.
const maxValue = 200

// Change is the task that a commit is the change of.
type Change struct {
	Project forge.ProjectID
	Intent  forge.IntentID
	Task    forge.TaskID
	// Requester names who asked for it, as the server knows them, and Claimed those whom
	// senders only named. Either may be several, with commas between them, or empty.
	Requester, Claimed string
	// Approver names who approved it, in the same form.
	Approver string
}

// Lines returns the trailers in their order, each as one line. One without a value is left out.
func (c *Change) Lines() []string {
	var list []string
	for _, t := range [][2]string{
		{Project, string(c.Project)},
		{Intent, string(c.Intent)},
		{Task, string(c.Task)},
		{Requester, c.Requester},
		{Claimed, c.Claimed},
		{Approver, c.Approver},
	} {
		if value := term.Short(t[1], maxValue); value != "" {
			list = append(list, t[0]+": "+value)
		}
	}
	return list
}

// Read returns the changes that a message names, in its order; usually one. A forge that makes
// one commit of several puts their messages one below the other, and some add a last paragraph of
// their own: so each paragraph is looked at, where git itself takes only those of the last one
// for trailers. A paragraph that does not name project, intent and task of one change names none.
func Read(message string) []Change {
	var list []Change
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(message, "\r\n", "\n"), "\n\n") {
		if c, ok := read(paragraph); ok {
			list = append(list, c)
		}
	}
	return list
}

// read returns the change that a paragraph names.
func read(paragraph string) (c Change, ok bool) {
	values := map[string]string{}
	for line := range strings.SplitSeq(paragraph, "\n") {
		if name, value, is := strings.Cut(line, ": "); is {
			values[name] = term.Short(value, maxValue)
		}
	}
	project, err := forge.ParseProjectID(values[Project])
	intent, err2 := forge.ParseIntentID(values[Intent])
	task, err3 := forge.ParseTaskID(values[Task])
	if err != nil || err2 != nil || err3 != nil || task.Intent() != intent {
		return c, false
	}
	return Change{project, intent, task, values[Requester], values[Claimed], values[Approver]}, true
}
