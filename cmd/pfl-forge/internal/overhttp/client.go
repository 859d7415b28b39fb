package overhttp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Config says which project is asked about, where, and with which token.
type Config struct {
	// Server is the address of the gateway, Token the token of its holder.
	Server, Token string
	// Login returns the token of who has logged in at an issuer, as it is now;
	// nil where Token counts. It is asked before each request, and after one that
	// was refused for the token: refused is that token then, in place of which
	// another one is wanted. An error that is identity.ErrAway ends by itself.
	Login func(ctx context.Context, refused string) (string, error)
	// CA is a file with authorities in PEM; empty for the system's.
	CA string
	// Project is the one that everything is about.
	Project forge.ProjectID
	// Log gets a line for each request at debug level, without the token.
	Log *slog.Logger
	// Say tells a person, once, that there is no answer yet and that it is
	// waited for. Nil tells nothing.
	Say func(format string, args ...any)
}

// Client asks a gateway. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	project forge.ProjectID
	token   func(ctx context.Context, refused string) (string, error)
	log     *slog.Logger
	http    *http.Client
	bounds  bounds
	// waits is called for each pause before a request is sent again; the first call tells that.
	waits func(err error)

	mu sync.Mutex
	// raw has questions as they were asked, by the text that is shown where
	// that is another one: an answer repeats the question.
	raw map[string]string
}

// bounds are those of requests.
type bounds struct {
	// answer is the time for one answer, and all that for a request with its repetitions.
	answer, all time.Duration
	// pause is the longest that the gateway may have us wait before we ask again.
	pause time.Duration
	// tries is how often a request is sent at most.
	tries int
	// bytes is the size of an answer.
	bytes int64
	// silence is the time without a word after which a stream counts as cut off.
	silence time.Duration
}

// standard bounds fit those of the gateway: it takes 30 seconds for an answer at most,
// answers with 16 MiB at most, and says something to a follower every 15 seconds.
var standard = bounds{answer: 35 * time.Second, all: time.Minute, pause: 10 * time.Second, tries: 5, bytes: 17 << 20, silence: 50 * time.Second}

// dialTime bounds the time for a connection.
const dialTime = 5 * time.Second

// New returns a client. It asks nothing yet. Errors name the flag that is wrong.
func New(cfg Config) (*Client, error) {
	base, err := parseAddress(cfg.Server)
	if err != nil {
		return nil, err
	}
	secure, err := encryption(cfg.CA)
	if err != nil {
		return nil, err
	}
	token := cfg.Login
	if token == nil {
		if err := CheckToken(cfg.Token); err != nil {
			return nil, fmt.Errorf("the token %w", err)
		}
		token = func(context.Context, string) (string, error) { return cfg.Token, nil }
	}
	c := &Client{base: base, project: cfg.Project, token: token, log: cfg.Log, bounds: standard, raw: map[string]string{}}
	var once sync.Once
	c.waits = func(err error) {
		if cfg.Say != nil {
			once.Do(func() { cfg.Say("no answer yet, and asking again for %s at most: %s", c.bounds.all, briefly(err)) })
		}
	}
	transport := &http.Transport{
		TLSClientConfig: secure, TLSHandshakeTimeout: dialTime, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4,
		MaxResponseHeaderBytes: 64 << 10, DialContext: c.dial,
	}
	if base.Scheme == "https" { // a proxy sees only where the connection goes to
		transport.Proxy = http.ProxyFromEnvironment
	}
	c.http = &http.Client{
		Transport: transport,
		// The token is sent to no other address than the one that was given.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close ends the connections that are idle. A request that is under way ends with its context.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// dial connects, and without TLS to this machine only, whatever a name stands for.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTime}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil || c.base.Scheme == "https" {
		return conn, err
	}
	if !isThisMachine(conn.RemoteAddr()) {
		_ = conn.Close() // nothing was sent
		return nil, fmt.Errorf("%s is another machine, and a token is sent there with TLS only: give https://", c.base.Hostname())
	}
	return conn, nil
}

// isThisMachine reports whether what is sent to an address stays on this machine.
func isThisMachine(a net.Addr) bool {
	to, ok := a.(*net.TCPAddr)
	return ok && to.IP.IsLoopback()
}

// path returns the address of something of the project. Each element is one of
// the path, whatever is in it.
func (c *Client) path(elements ...string) string {
	escaped := []string{c.base.String() + "/api/v1/projects", url.PathEscape(string(c.project))}
	for _, e := range elements {
		escaped = append(escaped, url.PathEscape(e))
	}
	return strings.Join(escaped, "/")
}
