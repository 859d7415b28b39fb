package schemas

import (
	"bytes"
	"embed"
	"io/fs"
	"path"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// Files has the schemas by names such as intent.schema.json.
//
//go:embed *.schema.json
var Files embed.FS

// Write brings the schemas in .forge/schemas up to date. They are not flushed: a torn
// one is written again at the next start.
func Write(d *disk.Disk) error {
	entries, err := Files.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		want, err := Files.ReadFile(e.Name())
		if err != nil {
			return err
		}
		to := path.Join(layout.Schemas, e.Name())
		if now, _, err := d.Read(to, disk.MaxDraft); err == nil && bytes.Equal(now, want) {
			continue
		}
		next := path.Join(layout.Staging, e.Name()+disk.Fresh)
		if err := d.WriteUnflushed(next, want); err != nil {
			return err
		}
		if err := d.Rename(next, to); err != nil {
			return err
		}
	}
	return nil
}

// Renew writes the schemas again if a person removed one of them.
func Renew(d *disk.Disk) error {
	names, err := fs.Glob(Files, "*")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !d.Exists(path.Join(layout.Schemas, name)) {
			return Write(d)
		}
	}
	return nil
}
