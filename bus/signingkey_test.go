package bus_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/proof"
)

// TestSigningKeyFollowsItsFile: the key is derived once for a file, and the one
// of the file as it is counts for signatures a moment later: whether it was
// replaced or written anew, also within one tick of the file system's clock.
func TestSigningKeyFollowsItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nkey")
	source := bus.SigningKey(path, "reviewer")
	if k, err := source(); err == nil {
		t.Errorf("a file that is missing has the key %s", k.ID())
	}
	now := time.Now()
	write := func(path string, at time.Time) string {
		t.Helper()
		_, seed := newKey(t)
		if err := os.WriteFile(path, seed, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		k, err := proof.Derive(seed, "reviewer")
		if err != nil {
			t.Fatal(err)
		}
		return k.ID()
	}
	expect := func(what, id string) (k *proof.Key) {
		t.Helper()
		wait.Until(t, what, func() bool {
			var err error
			k, err = source()
			return err == nil && k.ID() == id
		})
		return k
	}
	expect("a new file", write(path, now))
	id := write(path, now)
	if k, err := source(); err != nil || k.ID() != id {
		t.Errorf("a file that was written anew in the same moment has the former key: %v", err)
	}
	then := now.Add(-time.Hour)
	id = write(path, then)
	if expect("an old file", id) != expect("the same file", id) {
		t.Error("the key of a file that did not change was derived again")
	}
	id = write(path+".new", then)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	expect("replaced by one of the same time", id)
	expect("written anew", write(path, then.Add(time.Minute)))
	if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "garbage is refused", func() bool {
		_, err := source()
		return err != nil
	})
	expect("mended", write(path, then))
}
