package forgedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// goalPlaces is where the files of a goal are, as paths below GoalDir.
type goalPlaces struct{ history, knowledge, logs string }

// hold reports whether the goal has lines in a file.
func (p *goalPlaces) hold(rel string) bool { return rel == p.history || rel == p.knowledge }

// placesOf returns where the files of a goal are, or the reason why they are
// nowhere.
func placesOf(g *forge.GoalOptions) (goalPlaces, string) {
	p := goalPlaces{forge.DefaultHistoryFile, forge.DefaultKnowledgeFile, forge.DefaultLogDir}
	if g == nil {
		return p, ""
	}
	for _, f := range []struct {
		given string
		to    *string
	}{{g.HistoryFile, &p.history}, {g.KnowledgeFile, &p.knowledge}, {g.LogDir, &p.logs}} {
		switch {
		case f.given == "":
		case !isGoalFile(f.given) || path.Clean(f.given) != f.given || !filepath.IsLocal(f.given):
			return p, fmt.Sprintf("%q is no path below %s", f.given, GoalDir)
		default:
			*f.to = f.given
		}
	}
	return p, ""
}

// place returns the folder that a path is in, and its name there. It is
// fs.ErrNotExist if there is no folder of goals.
func (w *Workspace) place(rel string) (*os.Root, string, error) {
	if rel != GoalDir && !isGoalFile(rel) {
		return w.root, rel, nil
	}
	root, err := w.openGoals()
	return root, path.Clean(strings.TrimPrefix(strings.TrimPrefix(rel, GoalDir), "/")), err
}

func (w *Workspace) lstat(rel string) (fs.FileInfo, error) {
	root, name, err := w.place(rel)
	if err != nil {
		return nil, err
	}
	return root.Lstat(name)
}

func (w *Workspace) openDir(rel string) (*os.File, error) {
	root, name, err := w.place(rel)
	if err != nil {
		return nil, err
	}
	return root.Open(name)
}

// openGoals returns the folder of goals that is there now: a person may have
// removed the one from before.
func (w *Workspace) openGoals() (*os.Root, error) {
	dir := filepath.Join(w.path, GoalDir)
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if err := realFolder(info, GoalDir); err != nil {
		return nil, err
	}
	if w.goals != nil {
		if open, err := w.goals.Stat("."); err == nil && os.SameFile(open, info) {
			return w.goals, nil
		}
	}
	if err := w.closeGoals(); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if open, err := root.Stat("."); err != nil || !os.SameFile(open, info) {
		return nil, errors.Join(&errFolder{GoalDir, "being replaced"}, err, root.Close())
	}
	w.goals = root
	return root, nil
}

func (w *Workspace) closeGoals() error {
	if w.goals == nil {
		return nil
	}
	err := w.goals.Close()
	w.goals = nil
	return err
}

// makeGoalFolder makes the folder of a goal's file, and has git ignore all of
// them before.
func (w *Workspace) makeGoalFolder(rel string) error {
	if !w.ignored || !w.exists(GoalDir) {
		if err := ignoreFolder(w.path, GoalDir); err != nil {
			return err
		}
		w.ignored = true
		w.reached("goals ignored")
		if err := makeFolder(w.path, GoalDir); err != nil {
			return err
		}
	}
	var dir strings.Builder
	dir.WriteString(GoalDir)
	for _, name := range strings.Split(path.Dir(rel), "/")[1:] {
		dir.WriteString("/" + name)
		if err := w.folder(dir.String()); err != nil {
			return err
		}
	}
	return nil
}
