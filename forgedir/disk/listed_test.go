package disk_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// TestListed: a folder that was listed describes its files as they are now, follows
// no link, and stays the folder that it was, whatever a person puts in its place.
func TestListed(t *testing.T) {
	root := t.TempDir()
	d, err := disk.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, layout.Dir, layout.Intents)
	writeText(t, filepath.Join(dir, "b.yaml"), "1")
	writeText(t, filepath.Join(dir, "a.yaml"), "1")
	if err := os.Symlink(filepath.Join(root, "elsewhere"), filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	l, err := d.OpenListed(layout.Intents)
	if err != nil {
		t.Fatal(err)
	}
	names, err := d.List(layout.Intents)
	if want := []string{"a.yaml", "b.yaml", "link.yaml"}; err != nil || !slices.Equal(l.Names, want) || !slices.Equal(names, want) {
		t.Errorf("listed %v and %v, %v", l.Names, names, err)
	}
	writeText(t, filepath.Join(dir, "b.yaml"), "123")
	if info, err := l.Stat("b.yaml"); err != nil || info.Size() != 3 {
		t.Errorf("a file that has changed: %v, %v", info, err)
	}
	if info, err := l.Stat("link.yaml"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("a link: %v, %v", info, err)
	}
	for _, name := range []string{"gone.yaml", "../state.yaml", "/etc/passwd"} {
		if info, err := l.Stat(name); err == nil {
			t.Errorf("%s is described: %v", name, info)
		}
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if info, err := l.Stat("a.yaml"); err != nil || info.Size() != 1 {
		t.Errorf("of the folder that was moved: %v, %v", info, err)
	}
	if _, err := d.OpenListed(layout.Intents); !os.IsNotExist(err) {
		t.Errorf("a folder that is gone: %v", err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := d.OpenListed(layout.Intents); err == nil {
		t.Error("a link out of the repository is listed")
	}
	if _, err := l.Stat("../state.yaml"); err == nil {
		t.Error("a name leads out of the folder")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
