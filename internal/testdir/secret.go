package testdir

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Secret makes a directory hold these files as kubelet does for a mounted Secret, whatever it
// held before: the files are in a directory of their own, names lead there through a link that
// is replaced at once, and the version before is removed. Names may have folders.
func Secret(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	link, next := filepath.Join(dir, "..data"), filepath.Join(dir, "..tmp")
	before, _ := os.Readlink(link)
	version := ".." + rand.Text()
	errs := []error{os.MkdirAll(dir, 0o700)}
	names := map[string]bool{}
	for name, content := range files {
		path := filepath.Join(dir, version, name)
		first, _, _ := strings.Cut(name, "/")
		names[first] = true
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
	}
	errs = append(errs, os.Symlink(version, next), os.Rename(next, link))
	for name := range names {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); !errors.Is(err, os.ErrExist) {
			errs = append(errs, err)
		}
	}
	shown, err := os.ReadDir(dir)
	errs = append(errs, err)
	for _, e := range shown {
		if !strings.HasPrefix(e.Name(), "..") && !names[e.Name()] {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	if before != "" {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, before)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Errorf("testdir: %v", err)
	}
}
