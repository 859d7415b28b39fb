package goals

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
)

// places says where the files of a goal are, as paths below layout.GoalDir. Several goals
// may share them, and one file may be both history and knowledge. Logs is a folder, with
// one below it for each goal.
type places struct{ history, knowledge, logs string }

// hold reports whether the goal has lines in a file.
func (p *places) hold(rel string) bool { return rel == p.history || rel == p.knowledge }

// placesOf returns where the files of a goal are, or the reason why they are nowhere.
// The bounds are those of forge.Intent: this is for intents from before they were
// checked.
func placesOf(g *forge.GoalOptions) (p places, reason string) {
	if g == nil {
		g = &forge.GoalOptions{}
	}
	p = places{
		history:   cmp.Or(g.HistoryFile, forge.DefaultHistoryFile),
		knowledge: cmp.Or(g.KnowledgeFile, forge.DefaultKnowledgeFile),
		logs:      cmp.Or(g.LogDir, forge.DefaultLogDir),
	}
	for _, rel := range []string{p.history, p.knowledge, p.logs} {
		if !layout.IsGoalFile(rel) || path.Clean(rel) != rel || !filepath.IsLocal(rel) {
			return p, fmt.Sprintf("%q is no path below %s", rel, layout.GoalDir)
		}
	}
	return p, ""
}

// uses reports whether a goal has, or had, lines in a file.
func uses(n *projection.GoalPlaces, rel string) bool { return n.History == rel || n.Knowledge == rel }

// makeFolder makes the folder of a file below layout.GoalDir, and has git ignore all of
// that before, so that no commit takes it in. It does so once, and again when the folder
// is gone: a person may have taken it away together with the line in .gitignore.
func (w *Writer) makeFolder(rel string) error {
	if !w.ignored || !w.Disk.Exists(layout.GoalDir) {
		if err := w.Disk.Ignore(layout.GoalDir); err != nil {
			return err
		}
		w.ignored = true
		w.Disk.Reached("goals ignored")
		if err := w.Disk.MakeRoot(layout.GoalDir); err != nil {
			return err
		}
	}
	var dir strings.Builder
	dir.WriteString(layout.GoalDir)
	for _, name := range strings.Split(path.Dir(rel), "/")[1:] {
		dir.WriteString("/" + name)
		if err := w.Disk.MakeFolder(dir.String()); err != nil {
			return err
		}
	}
	return nil
}

// inTheWay returns the problem that a person put something in the place of a file or
// folder of goals. Other errors are none.
func inTheWay(rel string, err error) (person.Problem, bool) {
	if err == nil {
		return person.Problem{}, false
	}
	if bad, ok := errors.AsType[*disk.FolderError](err); ok {
		return person.Problem{Path: bad.Name, Reason: "is " + bad.What + ", not a directory", Hint: "remove it"}, true
	}
	if bad, ok := errors.AsType[*disk.IgnoreError](err); ok {
		return person.Problem{Path: disk.IgnoreFile, Reason: "is " + bad.What, Hint: bad.Hint()}, true
	}
	p := person.Unreadable(rel, err)
	return p, p.Hint != ""
}
