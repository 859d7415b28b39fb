// Package testdir gives tests directories that cost little.
//
// Tests that make a repository or a store each, and remove it again, spend much of their
// time in the file system of the disk. In the quick size they do it in memory.
package testdir

import (
	"os"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// room is how many bytes have to be free in memory, so that all tests of a machine
// together do not fill it.
const room = 4 << 30

// New returns an empty directory that is removed when the test ends: in memory in the
// quick size, where the machine has a file system with enough room there, and otherwise
// on the disk, as [testing.TB.TempDir]. A TMPDIR that is set is obeyed.
func New(t testing.TB) string {
	t.Helper()
	if testsize.Full() || os.Getenv("TMPDIR") != "" || free(memory) < room {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "pfl-forge-test-") //nolint:usetesting // that would be on the disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("testdir: %v", err)
		}
	})
	return dir
}
