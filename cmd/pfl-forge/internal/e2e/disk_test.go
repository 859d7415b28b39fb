//go:build !linux

package e2e

import "testing"

// smallDisk skips the test: only Linux has file systems of a given size.
func smallDisk(t *testing.T, _, _ string) {
	t.Helper()
	t.Skip("a small disk takes Linux")
}
