package schemas

import (
	"bytes"
	"embed"
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
	return write(d, func(name string, want []byte) bool {
		now, _, err := d.Read(name, disk.MaxDraft)
		return err == nil && bytes.Equal(now, want)
	})
}

// Renew writes the schemas again that a person removed. It does not read those that are
// there.
func Renew(d *disk.Disk) error {
	return write(d, func(name string, _ []byte) bool { return d.Exists(name) })
}

// write writes those schemas that are not there yet.
func write(d *disk.Disk, there func(name string, want []byte) bool) error {
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
		if there(to, want) {
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
