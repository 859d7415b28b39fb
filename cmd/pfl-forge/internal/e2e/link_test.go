package e2e

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// link is a network between the services and the NATS server that can fail: what connects to it
// is passed on to the server.
type link struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	open  map[net.Conn]bool
	block chan struct{} // closed when bytes pass; nil when they do
	delay time.Duration // of every piece that passes
}

// newLink returns a link to an address.
func newLink(t testing.TB, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, to: to, open: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { l.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.pass()
		l.reset()
		running.Wait()
	})
	return l
}

// serve passes on what one connection says, both ways, until either side ends it.
func (l *link) serve(conn net.Conn) {
	server, err := net.Dial("tcp", l.to)
	if err != nil {
		_ = conn.Close()
		return
	}
	l.mu.Lock()
	l.open[conn], l.open[server] = true, true
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.copy(server, conn) })
	both.Go(func() { l.copy(conn, server) })
	both.Wait()
	l.mu.Lock()
	delete(l.open, conn)
	delete(l.open, server)
	l.mu.Unlock()
}

// copy passes on one direction.
func (l *link) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		l.mu.Lock()
		block, delay := l.block, l.delay
		l.mu.Unlock()
		if block != nil {
			<-block
		}
		if delay > 0 {
			<-wait.Moment(rand.New(rand.NewPCG(1, 1)), delay, delay+1)
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// swallow lets nothing pass any more, and says so to nobody.
func (l *link) swallow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.block == nil {
		l.block = make(chan struct{})
	}
}

// pass ends swallow: what was on its way arrives.
func (l *link) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.block != nil {
		close(l.block)
		l.block = nil
	}
}

// slow delays every piece of a connection.
func (l *link) slow(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = by
}

// reset cuts every connection.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.open {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}
