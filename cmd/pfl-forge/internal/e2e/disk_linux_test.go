package e2e

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk puts a file system at a path until the test ends, with as much room
// as options of tmpfs say, such as size=64m.
func smallDisk(t *testing.T, path, room string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, room); err != nil {
		t.Skipf("mounting takes a right that this user has not: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
