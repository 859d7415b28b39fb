package workspace

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// ConfigFile is the name of the project's configuration in the repository's root.
const ConfigFile = "pfl-forge.yaml"

// ConfigTemplate is a pfl-forge.yaml in which everything is commented out: the
// defaults hold until a person removes a #.
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
// repository's root.
func (w *Workspace) Init() ([]string, error) {
	var made []string
	example := path.Join(draftsDir, exampleFile)
	for _, f := range []struct{ name, text string }{
		{ConfigFile, ConfigTemplate},
		{shown(example), ExampleDraft},
	} {
		created, err := create(filepath.Join(w.path, f.name), f.text)
		if err != nil {
			return made, err
		}
		if created {
			made = append(made, f.name)
		}
	}
	return made, nil
}

// create writes a file unless there is something with its name.
func create(name, text string) (bool, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.WriteString(text)
	return err == nil, errors.Join(err, f.Sync(), f.Close())
}
