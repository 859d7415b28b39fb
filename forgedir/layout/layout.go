package layout

import (
	"fmt"
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Dir is the name of the folder of local mode in the repository's root.
const Dir = ".forge"

// GoalDir is the name of the goals' folder in the repository's root. Paths below it
// begin with this name; all others are inside Dir.
const GoalDir = ".e8"

// The folders inside Dir that people look into.
const (
	Drafts   = "intent-drafts"
	Imported = "intent-drafts/imported" // drafts that became intents
	Intents  = "intents"                // the only files of intents of which edits are read
	Work     = "work"                   // tasks
	Reviews  = "reviews"
	Reports  = "reports"           // of audits
	History  = "knowledge/history" // of finished runs
	Kept     = "kept"              // versions of files that a person wrote and that had to give way
	Schemas  = "schemas"
	Logs     = "logs" // transcripts, which their workers write
)

// The files inside Dir that all intents share.
const (
	State        = "state.yaml"
	Observations = "observations.yaml"
)

// The folders inside Dir that people can remove without a loss.
const (
	Cache    = "cache"
	Bases    = "cache/base"     // former versions of intents' files, to which edits are compared
	Staging  = "cache/staging"  // files on their way to their place
	Replaced = "cache/replaced" // files that were swapped out
	Index    = "cache/index.jsonl"
	Looked   = "cache/looked" // what a look at the files knows for the next one
	Listed   = "cache/listed" // the intents as they were listed last
)

// Folders returns the folders inside Dir, parents first. They are made when Dir is
// opened, and have to be real directories.
func Folders() []string {
	return []string{
		Drafts, Imported, Intents, Work, Reviews, Reports, path.Dir(History), History,
		Kept, Schemas, Cache, Bases, Staging, Replaced,
	}
}

// Shown returns a path as it is seen from the repository's root.
func Shown(rel string) string {
	if IsGoalFile(rel) {
		return rel
	}
	return path.Join(Dir, rel)
}

// IsGoalFile reports whether a path is below GoalDir.
func IsGoalFile(rel string) bool { return strings.HasPrefix(rel, GoalDir+"/") }

// Flat returns a path as the name of one file. Unflat undoes it, since the names of
// our files hold no %.
func Flat(rel string) string { return strings.ReplaceAll(rel, "/", "%") }

// Unflat returns the path of which Flat made a name.
func Unflat(name string) string { return strings.ReplaceAll(name, "%", "/") }

// IntentFile returns the path of an intent's own file.
func IntentFile(id forge.IntentID) string { return path.Join(Intents, string(id)+".yaml") }

// TaskFile returns the path of a task's file.
func TaskFile(id forge.TaskID) string { return path.Join(Work, string(id)+".yaml") }

// ReviewFile returns the path of a review of a task's attempt. n counts the reviews
// of that attempt from 1: there are several if the base branch moved meanwhile.
func ReviewFile(id forge.TaskID, attempt, n int) string {
	name := fmt.Sprintf("%s-%d", id, attempt)
	if n > 1 {
		name = fmt.Sprintf("%s.%d", name, n)
	}
	return path.Join(Reviews, name+".yaml")
}

// ReportFile returns the path of the report on an intent's audit.
func ReportFile(id forge.IntentID) string { return path.Join(Reports, string(id)+".md") }

// HistoryFile returns the path of the record of an intent's run.
func HistoryFile(id forge.IntentID, run int) string {
	return path.Join(History, fmt.Sprintf("%s-%d.yaml", id, run))
}

// BaseFile returns the path of a former version of an intent's file.
func BaseFile(id forge.IntentID, revision int64) string {
	return path.Join(Bases, string(id), fmt.Sprintf("%d.yaml", revision))
}

// Owner returns the intent that a file is about, by the file's name; empty for files
// that all intents share.
func Owner(rel string) forge.IntentID {
	stem := strings.TrimSuffix(path.Base(rel), path.Ext(rel))
	switch path.Dir(rel) {
	case Intents, Reports:
		return forge.IntentID(stem)
	case Work, History: // <intent>-NNN, <intent>-<run>
		return forge.IntentID(cutLast(stem, "-"))
	case Reviews: // <intent>-NNN-<attempt>, or that and .<n>
		stem, _, _ = strings.Cut(stem, ".")
		return forge.IntentID(cutLast(cutLast(stem, "-"), "-"))
	}
	return ""
}

// cutLast returns the text before the last separator; empty without a separator.
func cutLast(s, sep string) string { return s[:max(0, strings.LastIndex(s, sep))] }
