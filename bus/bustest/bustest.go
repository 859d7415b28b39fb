// Package bustest gives tests a real nats-server in their own process: it is up
// in some ten milliseconds, and gone when the test ends.
//
// Start is enough for most tests of the bus, runner, gateway and CLI. A Server can be
// stopped, restarted, made to refuse subjects or to lose messages, and its stored messages
// can be altered: that is how tests show what happens after a crash, a lost disk or an
// intruder. The store does not wait for the disk, so nothing here measures durability.
package bustest

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testport"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// Server is a nats-server on a loopback port, with its store in a temporary
// directory. It does not wait for the disk.
type Server struct {
	opts  *server.Options
	nats  *server.Server
	buses []*bus.Bus
}

// Start returns a bus on a server of its own, with all streams made.
func Start(t testing.TB) *bus.Bus {
	t.Helper()
	return StartServer(t).Connect(t)
}

// StartServer starts a server without any stream or client. It is stopped when the test ends.
func StartServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{opts: &server.Options{
		Host: "127.0.0.1", Port: testport.Free(t), MaxPayload: 8 << 20, // as natsd
		JetStream: true, StoreDir: testdir.New(t), DisableJetStreamBanner: true,
		NoLog: true, NoSigs: true, DisableShortFirstPing: true,
	}}
	s.Start(t)
	t.Cleanup(s.Stop)
	return s
}

// Start starts a stopped server again, on the same port and the same store. What was in memory is
// gone, such as requests that wait for an answer.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	said := s.start(t)
	wait.Until(t, "the server is ready", func() bool {
		if s.nats.ReadyForConnections(time.Second) {
			return true
		}
		why := said.first()
		switch {
		case why == "":
		case strings.Contains(why, "address already in use"):
			// A child process that is being started has the socket of the server before it, up
			// to its exec.
			s.Stop()
			said = s.start(t)
		default:
			t.Fatalf("bustest: the server does not start: %s", why)
		}
		return false
	})
}

// start starts a server, and returns what it says of that.
func (s *Server) start(t testing.TB) *faults {
	t.Helper()
	n, err := server.NewServer(s.opts.Clone()) // of which the server reads as long as it runs
	if err != nil {
		t.Fatalf("bustest: %v", err)
	}
	said := new(faults)
	n.SetLoggerV2(said, false, false, false)
	s.nats = n
	n.Start()
	return said
}

// faults is a server's log that keeps alone why the server cannot start.
type faults struct {
	mu  sync.Mutex
	why string
}

func (f *faults) Noticef(string, ...any) {}
func (f *faults) Warnf(string, ...any)   {}
func (f *faults) Debugf(string, ...any)  {}
func (f *faults) Tracef(string, ...any)  {}
func (f *faults) Errorf(string, ...any)  {}

// Fatalf keeps the first error. It does not exit, as the server's own logger does.
func (f *faults) Fatalf(format string, v ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.why = cmp.Or(f.why, fmt.Sprintf(format, v...))
}

// first returns the first error; empty if there is none.
func (f *faults) first() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}

// Stop stops the server; clients are disconnected, and connect again on their own after Start.
func (s *Server) Stop() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// Restart is Stop and Start. Those that Connect returned are connected again when it
// returns: what is asked before that is lost, and only missed when its time is over.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop()
	s.Start(t)
	ctx := wait.Context(t)
	for _, b := range s.buses {
		wait.Until(t, "a client connects again", func() bool { return b.Ping(ctx) == nil })
	}
}

// URL returns where clients connect, also while the server is stopped.
func (s *Server) URL() string {
	return "nats://" + net.JoinHostPort(s.opts.Host, strconv.Itoa(s.opts.Port))
}

// Connect returns a bus on the server, with all streams made, by an account that may do
// everything. It is closed when the test ends.
func (s *Server) Connect(t testing.TB) *bus.Bus {
	t.Helper()
	ctx := wait.Context(t)
	b, err := bus.Connect(ctx, bus.Config{URL: s.URL(), Name: t.Name(), Replicas: 1, Logger: logger(t)})
	if err != nil {
		t.Fatalf("bustest: %v", err)
	}
	t.Cleanup(b.Close)
	if err := b.Ensure(ctx); err != nil {
		t.Fatalf("bustest: %v", err)
	}
	s.buses = append(s.buses, b)
	return b
}

// logger shows what the bus logs with the test's own output.
func logger(t testing.TB) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
