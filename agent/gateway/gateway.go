// Package gateway stands between agents and their models, so that no agent has a key.
//
// It is a reverse proxy on loopback in the service's own process. Each call gets a
// token that is good for the endpoints of one model API until the call is over; the
// gateway puts the key in its place, and counts what the model says it used.
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

// Config says where models are, and with which keys.
type Config struct {
	Accounts []Account                             // at most one per provider; see FromEnvironment
	CAFile   string                                // of certificates that are trusted beside the system's; may be empty
	Proxy    func(*http.Request) (*url.URL, error) // towards the models; nil means HTTPS_PROXY and NO_PROXY
	Log      *slog.Logger
}

// Gateway is safe for concurrent use.
type Gateway struct {
	log       *slog.Logger
	accounts  map[Provider]*Account
	server    *http.Server
	upstream  *http.Transport
	address   string
	listeners sync.WaitGroup

	mu     sync.Mutex
	grants map[[sha256.Size]byte]*Grant // by the hash of the token, so that a look-up tells nothing about it
}

// Start starts a gateway on a free port of loopback.
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
		log: cfg.Log, accounts: map[Provider]*Account{}, grants: map[[sha256.Size]byte]*Grant{},
		address: listener.Addr().String(), upstream: transport(cfg.Proxy, roots),
	}
	for i := range cfg.Accounts {
		g.accounts[cfg.Accounts[i].Provider] = &cfg.Accounts[i]
	}
	g.server = &http.Server{
		Handler: http.HandlerFunc(g.serve), ReadHeaderTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	g.Serve(listener)
	return g, nil
}

// transport neither follows redirects nor unpacks what it gets: an answer passes as it is.
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

// certificates returns nil, the system's, if there is no file.
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

// Address is where the gateway listens, as host:port.
func (g *Gateway) Address() string { return g.address }

// Serve answers on one more listener, such as one on loopback of another network
// namespace, until that is closed.
func (g *Gateway) Serve(l net.Listener) {
	g.listeners.Go(func() {
		if err := g.server.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			g.log.Warn("the model gateway does not listen any more", "address", l.Addr(), "error", err)
		}
	})
}

// Close cuts off what is under way.
func (g *Gateway) Close() error {
	g.mu.Lock()
	var open []*Grant
	for _, grant := range g.grants {
		open = append(open, grant)
	}
	g.mu.Unlock()
	for _, grant := range open {
		grant.Close()
	}
	err := g.server.Close()
	g.listeners.Wait()
	g.upstream.CloseIdleConnections()
	return err
}

// grantOf returns the grant of a token.
func (g *Gateway) grantOf(token string) *Grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.grants[sha256.Sum256([]byte(token))]
}

// Open grants access to a provider's models. Error: ErrNoAccount.
func (g *Gateway) Open(ctx context.Context, p Provider, limit Limit) (*Grant, error) {
	account := g.accounts[p]
	if account == nil {
		return nil, fmt.Errorf("%s: %w", p, ErrNoAccount)
	}
	grant := newGrant(ctx, g, account, limit)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grants[grant.hash] = grant
	return grant, nil
}

// ErrNoAccount is returned where the gateway has no key for a provider.
var ErrNoAccount = errors.New("the service has no key for this model API")
