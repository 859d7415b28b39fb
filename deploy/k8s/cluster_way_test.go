//go:build cluster

package k8s

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/pods"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// way leads connections to the API server, until it is lost: those that there
// are. New ones are led.
type way struct {
	listener net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

// newWay returns a way to an address, which ends with the test.
func newWay(t *testing.T, address string) *way {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w, ended := &way{listener: listener}, make(chan struct{})
	t.Cleanup(func() { _ = listener.Close(); <-ended; w.lose(false) })
	go func() {
		defer close(ended)
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				_ = in.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, in, out)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(in, out) }()
			go func() { _, _ = io.Copy(out, in) }()
		}
	}()
	return w
}

// lose ends the connections that there are, or, silently, has nothing come through them any more.
func (w *way) lose(silently bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		if silently {
			_ = c.SetReadDeadline(time.Unix(1, 0))
			continue
		}
		_ = c.Close()
	}
}

// lostWay has the way to a pod be lost while its command runs, as with the node of
// the pod. Either its end is told at once, and the pod, whose input ends, is about
// to end; or nothing is told at all, and to the API server the pod still runs.
func (h *commander) lostWay(t *testing.T, state string) {
	t.Helper()
	server, err := url.Parse(h.api.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		silently bool
		says     string
	}{"told": {false, "the pod "}, "silent": {true, "the pod still runs; the connection to it was lost"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, of := newWay(t, server.Host), *h
			known := h.api.TLS.Clone()
			known.ServerName = server.Hostname()
			of.api = &pods.API{URL: "https://" + w.listener.Addr().String(), Token: h.api.Token, TLS: known}
			c, once := shell(t, state, "echo started; sleep 600"), sync.Once{}
			c.Line = func(process.Stream, []byte) { once.Do(func() { w.lose(test.silently) }) }
			began := time.Now()
			r, err := of.executor(t, state).Run(t.Context(), c)
			if !errors.Is(err, process.ErrLost) || !strings.Contains(err.Error(), test.says) || r.ExitCode != -1 {
				t.Errorf("%v; status %d", err, r.ExitCode)
			}
			t.Logf("after %s: %v", time.Since(began).Round(time.Millisecond), err)
		})
	}
}
