package forgedir

import (
	_ "embed"
	"path"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// ConfigTemplate is a pfl-forge.yaml that shows every key, commented out.
//
//go:embed template/pfl-forge.yaml
var ConfigTemplate string

// ExampleDraft shows what a draft can say.
//
//go:embed template/draft.md
var ExampleDraft string

// exampleFile does not end in .md, so it is not read as a draft.
const exampleFile = "example.md.txt"

// Init writes the files that a person starts from where they are missing:
// pfl-forge.yaml and an example of a draft. It returns the paths that it made, from the
// repository's root. Git is to ignore the folder of goals from then on: a line that is
// not committed would be in the way of a goal that changes .gitignore.
func (d *Dir) Init() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.disk.Ignore(layout.GoalDir); err != nil {
		return nil, err
	}
	var made []string
	example := path.Join(layout.Drafts, exampleFile)
	for _, f := range []struct{ name, text string }{
		{config.FileName, ConfigTemplate},
		{layout.Shown(example), ExampleDraft},
	} {
		created, err := d.disk.Create(f.name, f.text)
		if err != nil {
			return made, err
		}
		if created {
			made = append(made, f.name)
		}
	}
	return made, nil
}
