package forgedir

import (
	"bytes"
	"embed"
	"io/fs"
	"path"
)

//go:embed schemas/*.schema.json
var schemas embed.FS

// Schemas returns a JSON Schema (draft 2020-12) for every kind of file of the
// .forge folder, for the front matter of drafts, and for pfl-forge.yaml, by names
// such as intent.schema.json. They are in .forge/schemas as well, for editors.
func Schemas() fs.FS {
	sub, err := fs.Sub(schemas, schemasDir)
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}

// schemaFiles are the paths of the schemas in the folder.
var schemaFiles = func() []string {
	names, err := fs.Glob(schemas, schemasDir+"/*")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	return names
}()

// writeSchemas brings .forge/schemas up to date.
func (w *Workspace) writeSchemas() error {
	for _, name := range schemaFiles {
		want, err := schemas.ReadFile(name)
		if err != nil {
			return err
		}
		if now, _, err := w.read(name, maxDraftBytes); err == nil && bytes.Equal(now, want) {
			continue
		}
		next := path.Join(stagingDir, path.Base(name)+fresh)
		if err := w.root.WriteFile(next, want, 0o644); err != nil {
			return err
		}
		if err := w.root.Rename(next, name); err != nil {
			return err
		}
	}
	return nil
}
