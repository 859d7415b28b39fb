package caches

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
)

const tree = git.OID("1111111111111111111111111111111111111111")

// write makes files below dir, by their paths.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns the files below dir, by their paths; what is no plain file by its kind.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if !d.Type().IsRegular() {
			out[name] = d.Type().String()
			return nil
		}
		content, err := os.ReadFile(path)
		out[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func open(t *testing.T, dir string, shared ...Shared) *Caches {
	t.Helper()
	c, err := New(dir, shared...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newLayer returns a layer in which files of the caches were written.
func newLayer(t *testing.T, c *Caches, files map[string]string) string {
	t.Helper()
	layer := filepath.Join(t.TempDir(), "layer")
	if _, err := c.Mounts(layer); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(layer, own, written), files)
	return layer
}

func merged(trees ...git.OID) Merged {
	return func(context.Context) ([]git.OID, error) { return trees, nil }
}

// A layer is kept when its tree is merged, and not before; however many others wait.
func TestLayersOfMergedTreesAreKept(t *testing.T) {
	c := open(t, t.TempDir())
	if err := c.Keep(t.Context(), newLayer(t, c, map[string]string{"go/a": "1"}), tree, merged()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c.Own()); len(got) > 0 {
		t.Fatalf("of a change that has not merged there is %v", got)
	}
	if err := c.TakeOver(t.Context(), merged("3333", tree)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c.Own()); !maps.Equal(got, map[string]string{"go/a": "1"}) {
		t.Errorf("got %v", got)
	}
	for i := range 2 * maxAwaited {
		oid := git.OID(strings.Repeat(string(rune('a'+i)), 40))
		if err := c.Keep(t.Context(), newLayer(t, c, map[string]string{"go/b": "x"}), oid, merged()); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(c.dir, awaited)); err != nil || len(left) != maxAwaited {
		t.Errorf("%d layers wait, want %d; %v", len(left), maxAwaited, err)
	}
}

// A layer adds to the caches what was not there. It changes, deletes and redirects nothing.
func TestALayerOnlyAdds(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	c := open(t, dir)
	write(t, c.Own(), map[string]string{"go/a": "good", "go/deleted": "good", "mod/m@v1/f.go": "good"})
	write(t, outside, map[string]string{"f": "good"})
	layer := newLayer(t, c, map[string]string{
		"go/a": "evil", "go/b": "new", "mod/m@v1/f.go": "evil", "mod/m@v2/f.go": "new", "go/owner": "evil", "mod/m@v3/x/y": "new",
	})
	in := filepath.Join(layer, own, written)
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(in, "link")),
		os.Symlink(outside, filepath.Join(in, "mod", "m@v3", "link")),
		syscall.Mkfifo(filepath.Join(in, "go", "fifo"), 0o600),
		os.Chmod(filepath.Join(in, "go", "owner"), 0o755|fs.ModeSetuid),
		os.Chmod(filepath.Join(in, "mod", "m@v3", "x"), 0o555),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// An overlay notes what was deleted as a device without numbers; only root may make one.
	if err := syscall.Mknod(filepath.Join(in, "go", "deleted"), syscall.S_IFCHR, 0); err != nil && os.Geteuid() == 0 {
		t.Fatal(err)
	}
	if err := c.Keep(t.Context(), layer, tree, merged(tree)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"go/a": "good", "go/b": "new", "go/deleted": "good", "mod/m@v1/f.go": "good", "mod/m@v2/f.go": "new", "mod/m@v3/x/y": "new",
	}
	if got := read(t, c.Own()); !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// A link that stood in the caches all the same is not followed out of them.
	if err := os.Symlink(outside, filepath.Join(c.Own(), "link")); err != nil {
		t.Fatal(err)
	}
	_ = c.Keep(t.Context(), newLayer(t, c, map[string]string{"link/g": "evil"}), tree, merged(tree))
	if got := read(t, outside); !maps.Equal(got, map[string]string{"f": "good"}) {
		t.Errorf("outside there is %v", got)
	}
}

// Caches that an operator shares are never written to; what lands is kept apart.
func TestSharedCachesAreOnlyRead(t *testing.T) {
	theirs := t.TempDir()
	write(t, theirs, map[string]string{"a": "theirs"})
	c := open(t, t.TempDir(), Shared{"GOCACHE", theirs})
	layer := newLayer(t, c, nil)
	write(t, filepath.Join(layer, "GOCACHE", written), map[string]string{"a": "evil", "b": "new"})
	if err := c.Keep(t.Context(), layer, tree, merged(tree)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, theirs); !maps.Equal(got, map[string]string{"a": "theirs"}) {
		t.Errorf("the operator's cache has %v", got)
	}
	mounts, err := c.Mounts(filepath.Join(t.TempDir(), "next"))
	if err != nil || len(mounts) != 2 || mounts[1].Path != theirs || !slices.Equal(mounts[1].Below, []string{c.cache("GOCACHE"), theirs}) {
		t.Errorf("got %+v, %v", mounts, err)
	}
}

// Caches that grow beyond their bound take no more, and the next start begins anew.
func TestFullCachesBeginAnew(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	c.bytes = 10
	write(t, c.Own(), map[string]string{"a": "12345678"})
	if err := c.Keep(t.Context(), newLayer(t, c, map[string]string{"b": "12345"}), tree, merged(tree)); err == nil {
		t.Error("nothing is said of full caches")
	}
	if got := read(t, c.Own()); !maps.Equal(got, map[string]string{"a": "12345678"}) {
		t.Errorf("got %v", got)
	}
	if got := read(t, open(t, dir).Own()); len(got) > 0 {
		t.Errorf("after the next start there is %v", got)
	}
}
