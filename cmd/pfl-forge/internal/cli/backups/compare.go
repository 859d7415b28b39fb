package backups

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
)

// ahead is an intent of which the base branch has more than its journal
// knows.
type ahead struct {
	Intent forge.IntentID `json:"intent" yaml:"intent"`
	// Unknown says that the journal is not there at all.
	Unknown bool `json:"unknown" yaml:"unknown"`
	// Merged are the tasks that are on the branch, and not merged as far as the
	// journal knows.
	Merged []mergedTask `json:"merged" yaml:"merged"`
	// Paused says that the intent waits for a person because of that.
	Paused bool `json:"paused" yaml:"paused"`
}

// mergedTask is a task whose change is on the base branch.
type mergedTask struct {
	Task   forge.TaskID `json:"task"   yaml:"task"`
	Commit string       `json:"commit" yaml:"commit"`
}

// compare returns the intents of which the branch has more than their
// journals, in the order of landed. journals has every intent that has one,
// with its state if it is not over: what the others had was decided.
func compare(landed []local.Landed, journals map[forge.IntentID]*forge.View) []ahead {
	list := []ahead{}
	at := map[forge.IntentID]int{}
	for _, l := range landed {
		v, known := journals[l.Intent]
		if known && (v == nil || done(v, l.Task)) {
			continue
		}
		i, found := at[l.Intent]
		if !found {
			i = len(list)
			at[l.Intent] = i
			list = append(list, ahead{Intent: l.Intent, Unknown: !known})
		}
		list[i].Merged = append(list[i].Merged, mergedTask{l.Task, string(l.Commit)})
	}
	return list
}

// done reports whether a task is merged by the journal.
func done(v *forge.View, id forge.TaskID) bool {
	for i := range v.Tasks {
		if v.Tasks[i].ID == id {
			return v.Tasks[i].Status == forge.TaskDone
		}
	}
	return false
}

// merged names the tasks with their commits.
func (x *ahead) merged() string {
	var parts []string
	for _, m := range x.Merged {
		parts = append(parts, fmt.Sprintf("%s as %.12s", m.Task, m.Commit))
	}
	return strings.Join(parts, ", ")
}

// reason says for a person why an intent is paused.
func (x *ahead) reason() string {
	return fmt.Sprintf("the base branch has %s, which the restored backup does not know; cancel it, or resume it to have it made again", x.merged())
}

// words says for a person what was found.
func (x *ahead) words() string {
	switch {
	case x.Unknown:
		return fmt.Sprintf("%s was asked for after the backup; the base branch has %s, which stays", x.Intent, x.merged())
	case x.Paused:
		return fmt.Sprintf("%s is paused: %s: pfl-forge cancel %s, or pfl-forge resume %s", x.Intent, x.reason(), x.Intent, x.Intent)
	}
	return fmt.Sprintf("%s: the base branch has %s, which the backup does not know: before you start services, "+
		"pfl-forge cancel %s, or pfl-forge pause %s", x.Intent, x.merged(), x.Intent, x.Intent)
}
