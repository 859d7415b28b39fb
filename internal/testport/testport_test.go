package testport_test

import (
	"fmt"
	"net"
	"runtime"
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

// TestFreeToOneTestAtATime: what tells the tests of other processes that a port is taken is there as
// long as the test that was given it.
func TestFreeToOneTestAtATime(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // ports are claimed on Linux alone
	}
	var name string
	t.Run("given", func(t *testing.T) {
		name = fmt.Sprint("@pfl-forge-testport-", testport.Free(t))
		if l, err := net.Listen("unix", name); err == nil {
			_ = l.Close()
			t.Error("another test could have the port as well")
		}
	})
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatalf("after the test: %v", err)
	}
	_ = l.Close()
}
