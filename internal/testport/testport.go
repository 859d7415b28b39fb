// Package testport gives tests ports for servers that start late, or that stop
// and start again at the same address.
//
// A server that starts at once listens on port 0 and needs none of this. Free
// hands out ports from outside the range of those that the kernel chooses for
// port 0, each once per process, and on Linux to one test on the machine at a time, so that
// parallel tests do not get each other's.
package testport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
)

// The ports that are given out, from first to before last: above those of well-known services,
// and below those that systems give to connections and to who listens on port 0, which begin
// at 32768 on Linux and at 49152 elsewhere. A port of those may be taken before its server
// starts, even by a client that tries to reach that very port and is given it as its own.
const (
	first = 12_000
	last  = 32_000
)

// given has the ports that this process has been given.
var given sync.Map

// Free returns a port of 127.0.0.1 on which nothing listens, another one at each call.
func Free(t testing.TB) int {
	t.Helper()
	for {
		port := first + rand.IntN(last-first)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		if claim(t, port) && !served(t, port) {
			return port
		}
	}
}

// served reports whether something listens on a port. It asks for a connection, and listens on
// nothing: what listens would be there still, after it is closed here, in each child process that
// is being started, up to its exec.
func served(t testing.TB, port int) bool {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// claim takes a port from the tests of other processes until this one ends, and reports
// whether no other one has it: between Free and the start of a server nothing listens there.
// What they agree by is the name of a socket, which is gone with its process.
func claim(t testing.TB, port int) bool {
	t.Helper()
	if runtime.GOOS != "linux" {
		return true // only Linux has names of sockets that are no files
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", fmt.Sprint("@pfl-forge-testport-", port))
	if err != nil {
		return false
	}
	t.Cleanup(func() { _ = l.Close() })
	return true
}
