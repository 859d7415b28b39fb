package testport_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testport"
)

// TestFree: ports are given once, can be listened on, and are none that a
// connection may have been given.
func TestFree(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		port := testport.Free(t)
		if seen[port] || port >= 32768 {
			t.Errorf("port %d", port)
		}
		seen[port] = true
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
}
