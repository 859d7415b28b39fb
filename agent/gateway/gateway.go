// Package gateway stands between agents and their models, so that no agent has a key.
//
// A Gateway is a reverse proxy on loopback in the service's own process. Open returns a
// Grant for one call: a random token, valid for the endpoints of one model API until
// Close. The CLI gets the token and the gateway's address in place of the key and the
// API's address. For each request the gateway
//
//  1. finds the grant by its token, and checks endpoint and budget (proxy.go), and, if the call has
//     no other network, that the provider reaches nothing for it (screen.go);
//  2. replaces the token by the key of this moment and forwards the request;
//  3. passes the answer on as it is, and counts the tokens that it reports (meter.go,
//     count.go).
//
// What a new provider needs is listed in CONTRIBUTING.md, under "A new agent back end".
package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// Config says which models there are, and with which keys.
type Config struct {
	// Variables returns a look-up of the variables as they are now, which define the
	// accounts. It is called for each grant and for each request, so that a call uses a new
	// key as soon as there is one.
	Variables func() Lookup
	// CAFile has certificates that are trusted beside the system's; may be empty.
	CAFile string
	// Proxy returns the proxy on the way to the models; nil means HTTPS_PROXY and
	// NO_PROXY.
	Proxy func(*http.Request) (*url.URL, error)
	// Log receives warnings and, at debug level, failed requests. It must not be nil.
	Log *slog.Logger
}

// Gateway is safe for concurrent use.
type Gateway struct {
	log       *slog.Logger
	variables func() Lookup
	server    *http.Server
	upstream  *http.Transport
	// address is the first listener's, as host:port.
	address   string
	listeners sync.WaitGroup

	mu sync.Mutex
	// grants has the open grants by the hash of their token, so that the time of a
	// look-up reveals nothing about it.
	grants map[[sha256.Size]byte]*Grant
}

// Start starts a gateway on a free port of loopback. It runs until Close.
func Start(cfg Config) (*Gateway, error) {
	roots, err := certificates(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it takes no time
	if err != nil {
		return nil, fmt.Errorf("the model gateway cannot listen: %w", err)
	}
	g := &Gateway{
		log: cfg.Log, variables: cfg.Variables, grants: map[[sha256.Size]byte]*Grant{},
		address: listener.Addr().String(), upstream: transport(cfg.Proxy, roots),
	}
	g.server = &http.Server{
		Handler: http.HandlerFunc(g.serve), ReadHeaderTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	g.Serve(listener)
	return g, nil
}

// transport returns a transport that neither follows redirects nor decompresses, so
// that an answer passes unchanged.
func transport(proxy func(*http.Request) (*url.URL, error), roots *x509.CertPool) *http.Transport {
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 15 * time.Second,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
	}
}

// certificates returns the system's certificates with those of the file; nil, which
// means the system's, if there is no file.
func certificates(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // the system's
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the certificates that NODE_EXTRA_CA_CERTS names: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s, which NODE_EXTRA_CA_CERTS names, holds no certificate", file)
	}
	return roots, nil
}

// Address returns the address on which the gateway listens, as host:port.
func (g *Gateway) Address() string { return g.address }

// Serve accepts connections from one more listener until that is closed, and returns at
// once. Sandboxes use it for loopback of their own network namespace.
func (g *Gateway) Serve(l net.Listener) {
	g.listeners.Go(func() {
		if err := g.server.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			g.log.Warn("the model gateway does not listen any more", "address", l.Addr(), "error", err)
		}
	})
}

// Close closes all grants and listeners, and cuts off the requests in progress.
func (g *Gateway) Close() error {
	g.mu.Lock()
	var open []*Grant
	for _, grant := range g.grants {
		open = append(open, grant)
	}
	g.mu.Unlock()
	// Closing a grant takes the gateway's lock, so it is not held here.
	for _, grant := range open {
		grant.Close()
	}
	err := g.server.Close()
	g.listeners.Wait()
	g.upstream.CloseIdleConnections()
	return err
}

// grantOf returns the grant of a token; nil if there is none.
func (g *Gateway) grantOf(token string) *Grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.grants[sha256.Sum256([]byte(token))]
}

// Open grants access to a provider's models until ctx or the grant ends. It returns
// ErrNoAccount if there is no key for the provider now.
func (g *Gateway) Open(ctx context.Context, p Provider, limit Limit) (*Grant, error) {
	account, err := accountOf(p, g.variables())
	if err != nil {
		return nil, err
	}
	grant := newGrant(ctx, g, account, limit)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grants[grant.hash] = grant
	return grant, nil
}

// ErrNoAccount is returned by Open if the gateway has no key for a provider.
var ErrNoAccount = errors.New("the service has no key for this model API")
