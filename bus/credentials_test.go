package bus_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// newKey returns a user's nkey: what the server knows, and the seed.
func newKey(t *testing.T) (public string, seed []byte) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err = pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err = pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return public, seed
}

// keyServer runs a server that knows one nkey, and returns how to replace it.
func keyServer(t *testing.T, public string) (*server.Server, func(public string)) {
	t.Helper()
	opts := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
		Nkeys: []*server.NkeyUser{{Nkey: public}},
	}
	s := start(t, opts)
	return s, func(public string) {
		t.Helper()
		changed := opts.Clone()
		changed.Port = s.Addr().(*net.TCPAddr).Port
		changed.Nkeys = []*server.NkeyUser{{Nkey: public}}
		if err := s.ReloadOptions(changed); err != nil {
			t.Fatal(err)
		}
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestKeyIsReplaced checks that a bus goes on with the key that is in the file, when the
// server stops to know the former one, and that the former one is of no use then. A file
// that cannot be read meanwhile does no harm.
func TestKeyIsReplaced(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	first, seed := newKey(t)
	file := filepath.Join(t.TempDir(), "nkey")
	writeFile(t, file, append(seed, '\n'))
	s, replace := keyServer(t, first)
	for name, connect := range map[string]func() (*bus.Bus, error){
		"a service": func() (*bus.Bus, error) {
			return bus.Await(ctx, bus.Config{URL: s.ClientURL(), NKey: file}, bus.Waiting{})
		},
		"a person": func() (*bus.Bus, error) { return bus.Connect(ctx, bus.Config{URL: s.ClientURL(), NKey: file}) },
	} {
		b, err := connect()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(b.Close)
		old := filepath.Join(t.TempDir(), "old")
		former, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, old, former)
		writeFile(t, file, []byte("half a se"))
		second, seed := newKey(t)
		replace(second)
		wait.Until(t, name+" is refused", func() bool { return b.Ping(ctx) != nil })
		writeFile(t, file, seed)
		wait.Until(t, name+" goes on with the new key", func() bool { return b.Ping(ctx) == nil })
		if _, err := bus.Await(ctx, bus.Config{URL: s.ClientURL(), NKey: old}, bus.Waiting{}); !errors.Is(err, bus.ErrCredentials) {
			t.Errorf("%s with the former key: %v", name, err)
		}
	}
}

// TestBadSeeds checks that a seed that is none is named by its file, and never shown.
func TestBadSeeds(t *testing.T) {
	t.Parallel()
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := account.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nkey")
	for _, tt := range []struct {
		content []byte
		want    string
	}{
		{nil, "does not hold the seed of an nkey"},
		{[]byte("s3cret"), "does not hold the seed of an nkey"},
		{seed, "not a user's"},
	} {
		writeFile(t, file, tt.content)
		_, err := bus.ReadSeed(file)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v", tt.content, err)
		}
		if len(tt.content) > 0 && strings.Contains(err.Error(), string(tt.content)) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
	if _, err := bus.ReadSeed(file + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// newCertificate writes a certificate of 127.0.0.1 that is its own authority, with its key.
func newCertificate(t *testing.T) (cert, key string, pair tls.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writeFile(t, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	writeFile(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs}))
	return cert, key, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

// TestCertificates checks that a server is trusted by the authority that is given, that it
// may ask for this client's certificate, and that both are read again.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	ca, _, server1 := newCertificate(t)
	cert, key, _ := newCertificate(t)
	clients := x509.NewCertPool()
	text, err := os.ReadFile(cert)
	if err != nil || !clients.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	opts := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
		TLS: true, TLSVerify: true, TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{server1}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		},
	}
	s := start(t, opts)
	whole := bus.TLS{CA: ca, Cert: cert, Key: key}
	for name, bad := range map[string]bus.TLS{
		"not the server's authority": {CA: cert, Cert: cert, Key: key},
		"no certificate of its own":  {CA: ca},
		"the system's authorities":   {Cert: cert, Key: key},
		"no such authority":          {CA: ca + "x", Cert: cert, Key: key},
		"the key of another":         {CA: ca, Cert: ca, Key: key},
	} {
		if _, err := bus.Await(ctx, bus.Config{URL: s.ClientURL(), TLS: bad}, bus.Waiting{}); !errors.Is(err, bus.ErrCertificate) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b, err := bus.Await(ctx, bus.Config{URL: strings.Replace(s.ClientURL(), "tls://", "nats://", 1), TLS: whole}, bus.Waiting{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if shown := b.Certificate(); shown == nil || string(shown.Raw) != string(server1.Certificate[0]) {
		t.Errorf("the server has shown %v", shown)
	}

	next, _, server2 := newCertificate(t)
	text, err = os.ReadFile(next)
	if err != nil {
		t.Fatal(err)
	}
	changed := opts.Clone()
	changed.Port = s.Addr().(*net.TCPAddr).Port
	changed.TLSConfig.Certificates = []tls.Certificate{server2}
	s.Shutdown()
	s.WaitForShutdown()
	start(t, changed)
	wait.Until(t, "the new server is not trusted", func() bool { return b.Ping(ctx) != nil })
	writeFile(t, ca, text)
	wait.Until(t, "the authority is read again", func() bool { return b.Ping(ctx) == nil })
}

// TestServerReadsItsCertificateOnce: a server goes on to show the certificate
// with which it started when the files are replaced, until it is started anew.
// So who renews it, as cert-manager does, has to see to that.
func TestServerReadsItsCertificateOnce(t *testing.T) {
	t.Parallel()
	cert, key, first := newCertificate(t)
	conf := filepath.Join(t.TempDir(), "nats.conf")
	writeFile(t, conf, fmt.Appendf(nil, "listen: \"127.0.0.1:-1\"\ntls { cert_file: %q, key_file: %q }\n", cert, key))
	// started returns a server of these files.
	started := func() *server.Server {
		opts, err := server.ProcessConfigFile(conf)
		if err != nil {
			t.Fatal(err)
		}
		opts.NoLog, opts.NoSigs = true, true
		return start(t, opts)
	}
	// shows compares the certificate that a new client is shown.
	shows := func(s *server.Server, want tls.Certificate) {
		t.Helper()
		c, err := nats.Connect(s.ClientURL(), nats.Secure(&tls.Config{InsecureSkipVerify: true})) // it is looked at
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		state, err := c.TLSConnectionState()
		if err != nil || !bytes.Equal(state.PeerCertificates[0].Raw, want.Certificate[0]) {
			t.Errorf("another certificate is shown: %v", err)
		}
	}
	s := started()
	shows(s, first)
	renewed, renewedKey, second := newCertificate(t)
	for from, to := range map[string]string{renewed: cert, renewedKey: key} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, to, text)
	}
	shows(s, first)
	s.Shutdown()
	s.WaitForShutdown()
	shows(started(), second)
}
