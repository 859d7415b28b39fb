package bus_test

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// slowly returns the address of a relay to a server that brings about so many bytes a second back.
func slowly(t *testing.T, server string, rate int) string {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	relay := func(in net.Conn) {
		out, err := net.Dial("tcp", to.Host)
		if err != nil {
			_ = in.Close()
			return
		}
		running.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
		running.Go(func() {
			defer func() { _ = in.Close() }()
			for {
				if _, err := io.CopyN(in, out, int64(rate/100)); err != nil {
					return
				}
				<-wait.Briefly(t, 10*time.Millisecond).Done()
			}
		})
	}
	running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			relay(in)
		}
	})
	return "nats://" + l.Addr().String()
}

// Over a connection on which one answer takes longer than a request may,
// changes are published all the same: what has come is not asked for again.
func TestSlowConnection(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	const records, size = 4, 1 << 20
	newBook(t, b, "first")
	k := newBook(t, b, "long")
	for range records { // which tell nothing: only what comes after them shows that they were passed
		k.become(func(s *forge.Summary) { s.Reason = strings.Repeat("x", size) })
	}
	newBook(t, b, "last")
	slow, err := bus.Connect(t.Context(), bus.Config{URL: slowly(t, s.URL(), records*size/7)}) // all of it takes some 7 s
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.Close)
	tellChanges(t, slow)
	if diff := cmp.Diff([]string{"first.submitted", "long.submitted", "last.submitted"}, whats(published(t, s, 3))); diff != "" {
		t.Error(diff)
	}
}
