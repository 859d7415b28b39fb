package bustest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// StartWithoutJetStream starts a stopped server again as one that stores
// nothing, such as one whose disk is not mounted yet. The Start after it stores
// again, and all that was stored before is there.
func (s *Server) StartWithoutJetStream(t testing.TB) {
	t.Helper()
	s.opts.JetStream = false
	s.Start(t)
	s.opts.JetStream = true
}

// SetToken makes the server ask for a token from its next start on; empty: for none.
func (s *Server) SetToken(token string) { s.opts.Authorization = token }

// UseTLS makes the server insist on TLS from its next start on. It returns the path of a
// file with the certificate, which names 127.0.0.1 and is its own authority, and the URL
// for clients.
func (s *Server) UseTLS(t testing.TB) (authority, url string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("bustest: %v", err)
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bustest"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatalf("bustest: %v", err)
	}
	authority = filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatalf("bustest: %v", err)
	}
	s.opts.TLS, s.opts.TLSConfig = true, &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
	return authority, strings.Replace(s.URL(), "nats://", "tls://", 1)
}

// NotYet takes connections at the address of a server that is not there yet,
// and does with them what an Answer says.
type NotYet struct {
	listener net.Listener
	done     sync.WaitGroup
	mu       sync.Mutex
	open     []net.Conn
	asked    chan struct{}
}

// Answer treats a connection in the place of a server.
type Answer func(*net.TCPConn) error

// Silence keeps a connection, and says nothing.
func Silence(*net.TCPConn) error { return nil }

// Hangup closes a connection at once.
func Hangup(c *net.TCPConn) error { return c.Close() }

// Reset breaks a connection off, so that who made it is told that it was reset.
func Reset(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) }

// Garbage answers as another program does that listens there, and keeps the connection.
func Garbage(c *net.TCPConn) error {
	_, err := c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n\x00\xff"))
	return err
}

// Occupy listens at the address of a stopped server until Leave is called, and
// answers each connection.
func (s *Server) Occupy(t testing.TB, answer Answer) *NotYet {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", strings.TrimPrefix(s.URL(), "nats://"))
	if err != nil {
		t.Fatalf("bustest: %v", err)
	}
	n := &NotYet{listener: l, asked: make(chan struct{}, 1000)}
	n.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.mu.Lock()
			n.open = append(n.open, c)
			n.mu.Unlock()
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = answer(tcp) // whoever connected may be gone
			}
			select {
			case n.asked <- struct{}{}:
			default:
			}
		}
	})
	t.Cleanup(n.Leave)
	return n
}

// Asked receives an element for each connection.
func (n *NotYet) Asked() <-chan struct{} { return n.asked }

// Leave gives the address back. It may be called again.
func (n *NotYet) Leave() {
	_ = n.listener.Close()
	n.done.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.open {
		_ = c.Close()
	}
	n.open = nil
}

// Forbid makes the server refuse these subjects to everybody from its next start on; none:
// nothing any more.
func (s *Server) Forbid(subjects ...string) {
	s.opts.Users, s.opts.NoAuthUser = nil, ""
	if len(subjects) == 0 {
		return
	}
	const anybody = "anybody"
	s.opts.NoAuthUser = anybody
	s.opts.Users = []*server.User{{Username: anybody, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Deny: subjects}, Subscribe: &server.SubjectPermission{Allow: []string{">"}},
	}}}
}
