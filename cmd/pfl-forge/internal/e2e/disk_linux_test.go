package e2e

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk puts a file system of 64 MiB at a path until the test ends.
func smallDisk(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("mounting takes a right that this user has not: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
