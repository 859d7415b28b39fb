package forgedir

import (
	"fmt"
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Dir is the folder's name in the repository's root.
const Dir = ".forge"

// GoalDir is the name of the goals' folder in the repository's root. Paths below
// it begin with this name; all others are inside Dir.
const GoalDir = ".e8"

// Where things are inside the folder.
const (
	draftsDir    = "intent-drafts"
	importedDir  = "intent-drafts/imported"
	intentsDir   = "intents"
	workDir      = "work"
	reviewsDir   = "reviews"
	reportsDir   = "reports"
	historyDir   = "knowledge/history"
	keptDir      = "kept"
	schemasDir   = "schemas"
	logsDir      = "logs" // transcripts, which their workers write
	cacheDir     = "cache"
	baseDir      = "cache/base"     // versions of intent files, that edits are compared to
	stagingDir   = "cache/staging"  // files on their way to their place
	replacedDir  = "cache/replaced" // files that were swapped out
	indexFile    = "cache/index.jsonl"
	stateFile    = "state.yaml"
	observations = "observations.yaml"
)

// folders are made by Open and must be real directories.
var folders = []string{
	draftsDir, importedDir, intentsDir, workDir, reviewsDir, reportsDir, "knowledge", historyDir,
	keptDir, schemasDir, cacheDir, baseDir, stagingDir, replacedDir,
}

// shown returns a path of the folders as seen from the repository's root.
func shown(rel string) string {
	if isGoalFile(rel) {
		return rel
	}
	return path.Join(Dir, rel)
}

// isGoalFile reports whether a path is below GoalDir.
func isGoalFile(rel string) bool { return strings.HasPrefix(rel, GoalDir+"/") }

// flat makes one file name of a path of the folder, reversibly: names of ours
// hold no %.
func flat(rel string) string { return strings.ReplaceAll(rel, "/", "%") }

func unflat(name string) string { return strings.ReplaceAll(name, "%", "/") }

func intentFile(id forge.IntentID) string { return path.Join(intentsDir, string(id)+".yaml") }

func reportFile(id forge.IntentID) string { return path.Join(reportsDir, string(id)+".md") }

func baseFile(id forge.IntentID, revision int64) string {
	return path.Join(baseDir, string(id), fmt.Sprintf("%d.yaml", revision))
}

// ownerOf returns the intent that a file is about; empty for files that all
// intents share.
func ownerOf(rel string) forge.IntentID {
	stem := strings.TrimSuffix(path.Base(rel), path.Ext(rel))
	switch path.Dir(rel) {
	case intentsDir, reportsDir:
		return forge.IntentID(stem)
	case workDir, historyDir: // <intent>-NNN, <intent>-<run>
		return forge.IntentID(cutLast(stem, "-"))
	case reviewsDir: // <intent>-NNN-<attempt>, or that and .<n>
		stem, _, _ = strings.Cut(stem, ".")
		return forge.IntentID(cutLast(cutLast(stem, "-"), "-"))
	}
	return ""
}

func cutLast(s, sep string) string { return s[:max(0, strings.LastIndex(s, sep))] }
