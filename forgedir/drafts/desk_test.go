package drafts_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
)

// fixture is a folder of drafts, as a person and a runner use it.
type fixture struct {
	*drafts.Reader

	t    testing.TB
	root string
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	root := t.TempDir()
	folder, err := disk.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	folder.Settle, folder.Flush = 0, func(*os.File) error { return nil }
	return &fixture{t: t, root: root, Reader: &drafts.Reader{
		Project: "demo", Actor: "person", Disk: folder, Refusals: person.Refusals{},
	}}
}

// file returns the path of a file in the folder of drafts.
func (d *fixture) file(name string) string {
	return filepath.Join(d.root, layout.Dir, filepath.FromSlash(layout.Drafts), filepath.FromSlash(name))
}

func (d *fixture) put(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(d.file(name), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *fixture) text(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(d.file(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

func (d *fixture) exists(name string) bool {
	_, err := os.Lstat(d.file(name))
	return err == nil
}

func (d *fixture) drafts() ([]person.Input, []person.Problem) {
	d.t.Helper()
	inputs, problems, err := d.Read(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return inputs, problems
}
