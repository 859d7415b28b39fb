package testdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

func TestNew(t *testing.T) {
	for _, size := range []string{"", "full"} {
		t.Setenv(testsize.Variable, size)
		var dirs [2]string
		t.Run("size "+size, func(t *testing.T) {
			for i := range dirs {
				dirs[i] = testdir.New(t)
				if err := os.WriteFile(filepath.Join(dirs[i], "f"), nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		})
		if dirs[0] == dirs[1] {
			t.Errorf("%s was returned twice", dirs[0])
		}
		for _, dir := range dirs {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s is left", dir)
			}
		}
	}
}

// The full size, and whoever says so with TMPDIR, has the real disk.
func TestDisk(t *testing.T) {
	set := t.TempDir()
	t.Setenv("TMPDIR", set)
	t.Run("TMPDIR", func(t *testing.T) {
		if dir := testdir.New(t); !strings.HasPrefix(dir, set) {
			t.Errorf("made in %s, want in %s", dir, set)
		}
	})
}

// A Secret is replaced as a whole: what the version before had, and this one has not, is gone.
func TestSecret(t *testing.T) {
	dir := t.TempDir()
	testdir.Secret(t, dir, map[string]string{"a": "1", "d/b": "1"})
	testdir.Secret(t, dir, map[string]string{"a": "2"})
	if b, err := os.ReadFile(filepath.Join(dir, "a")); string(b) != "2" {
		t.Errorf("%q, %v", b, err)
	}
	entries, err := os.ReadDir(dir)
	if len(entries) != 3 { // the name, the link, the version
		t.Errorf("%v, %v", entries, err)
	}
}
