package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// A disk that returns garbage: what is lost is said, and what is whole goes on.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	r := newRepo(t, appending)
	r.draft("first", "recipe: append\nwith: {LINE: one}")
	r.must(0, "run")
	blocks := 0
	err := filepath.WalkDir(filepath.Join(r.dir, ".forge", "nats"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".blk" || !strings.Contains(path, "FORGE_JOURNAL") {
			return err
		}
		blocks++
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if _, err := f.WriteAt([]byte("GARBAGE"), 100); err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil || blocks == 0 {
		t.Fatalf("%d blocks of the journal, %v", blocks, err)
	}
	r.draft("second", "recipe: append\nwith: {LINE: two}")
	got := r.must(3, "run")
	contains(t, "run", got.stderr, ".forge/nats: ", "/first: records of the journal are missing", "pfl-forge recover --dry-run")
	if log := r.read("log.txt"); !strings.Contains(log, "two") {
		t.Errorf("the second intent did not go on: log.txt is %q", log)
	}
}
