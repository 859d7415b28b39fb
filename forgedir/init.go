package forgedir

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/config"
)

// ConfigTemplate is a pfl-forge.yaml that shows every key, commented out.
//
//go:embed template/pfl-forge.yaml
var ConfigTemplate string

// ExampleDraft shows what a draft can say.
//
//go:embed template/draft.md
var ExampleDraft string

// exampleFile does not end in .md, so it is nobody's draft.
const exampleFile = "example.md.txt"

// Init writes what a person starts from where it is missing: pfl-forge.yaml and
// an example of a draft. It returns the paths that it made, from the
// repository's root. Git is to ignore the folder of goals from then on: a line that is
// not committed would be in the way of a goal that changes .gitignore.
func (w *Workspace) Init() ([]string, error) {
	if err := ignoreFolder(w.path, GoalDir); err != nil {
		return nil, err
	}
	var made []string
	example := path.Join(draftsDir, exampleFile)
	for _, f := range []struct{ name, text string }{
		{config.FileName, ConfigTemplate},
		{shown(example), ExampleDraft},
	} {
		created, err := w.create(f.name, f.text)
		if err != nil {
			return made, err
		}
		if created {
			made = append(made, f.name)
		}
	}
	return made, nil
}

// create writes a file of the repository, all of it or nothing, unless there
// is something with its name.
func (w *Workspace) create(name, text string) (bool, error) {
	to := filepath.Join(w.path, name)
	if _, err := os.Lstat(to); err == nil {
		return false, nil
	}
	written := path.Join(stagingDir, path.Base(name)+fresh)
	if err := writeFile(w.root, written, []byte(text), w.flush); err != nil {
		return false, err
	}
	w.reached("init fresh")
	from := filepath.Join(w.path, Dir, filepath.FromSlash(written))
	err := os.Link(from, to)
	switch {
	case errors.Is(err, fs.ErrExist): // a person was quicker
		return false, w.root.Remove(written)
	case err != nil: // a file system without links
		err = os.Rename(from, to)
		return err == nil, err
	}
	return true, w.root.Remove(written)
}
