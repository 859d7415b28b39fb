package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// Config says how a forge is spoken to.
type Config struct {
	// Name is the forge's for people, such as Gitea, and Called stands for it
	// in errors; empty for the forge.
	Name, Called string
	// Base is where its API begins.
	Base *url.URL
	// Header is sent with each request.
	Header http.Header
	// Authorize returns the header Authorization of a request.
	Authorize func(ctx context.Context) (string, error)
	// Renew is told that the forge does not take an authorization any more, and says whether
	// another one may be had; nil if there is only one.
	Renew func(authorization string) bool
	// Follow has redirects of these statuses followed on the forge itself: another one is an error.
	Follow []int
	// Keep has answers with an ETag kept.
	Keep bool
	// Hold has nothing asked until a limit ends, by all clients that share it; nil for one that is
	// asked all the same.
	Hold *Hold
	// Limited reports whether a refusal by 403 is a limit, although no header says so; nil if
	// headers always do.
	Limited func(message string) bool
	// Again reports whether a refusal says that the forge has not computed yet whether it can;
	// nil if none does.
	Again func(code int, message string) bool
	// Denied returns the words for a refusal of a right; nil for the code alone.
	Denied func(code int, message string) string
	// MaxAnswer bounds an answer, in bytes; 0 is 8 MiB.
	MaxAnswer int
	// Hide has no error name the path that was asked: whoever knows it needs no token.
	Hide bool
	// Guard says where no connection is made to; nil: to any address, as to a
	// forge of the operator's.
	Guard *Guard
	// Sign returns headers for a request with a body; nil for none.
	Sign func(body []byte) (http.Header, error)
	// Now is the clock.
	Now func() time.Time
}

// Client asks one forge. It is safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client
	kept store
}

const (
	// maxAnswer bounds an answer of the forge, in bytes, and patience the time for it.
	maxAnswer = 8 << 20
	patience  = 20 * time.Second
	// maxHops is how many redirects are followed.
	maxHops = 3
)

// New returns a Client.
func New(cfg Config) *Client {
	cfg.MaxAnswer, cfg.Called = cmp.Or(cfg.MaxAnswer, maxAnswer), cmp.Or(cfg.Called, "the forge")
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}
	if cfg.Guard != nil {
		transport.DialContext = cfg.Guard.dial(cfg.Base)
	}
	return &Client{cfg: cfg, http: &http.Client{
		Timeout:       patience,
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ParseURL reads the setting url of a forge: with TLS, unless it is on this machine.
func ParseURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("url: has to be that of the forge, such as https://git.example.com, without a user or a query")
	}
	if !isPrivate(base) {
		return nil, errors.New("url: has to begin with https, unless the forge is on this machine: the token would be there for all to read")
	}
	return base, nil
}

// ParseAddress reads an address to which something secret is sent, or that is
// secret itself: with TLS, unless it is on this machine.
func ParseAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || !isPrivate(u) {
		return nil, errors.New("it is no address with https, or of this machine, without a user")
	}
	return u, nil
}

// isPrivate reports whether a request to an address can be read by those at both ends alone.
func isPrivate(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ReadToken returns the token in a file as it is now.
func ReadToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("token_file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("token_file: it holds no token of one line")
	}
	return token, nil
}

// answer has the words of the forge to one request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// Call asks the forge. path has escaped parts; in and out are JSON, nil for none.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	_, err := c.ask(ctx, method, path, in, out)
	return err
}

// ask is Call, and returns the answer as well.
func (c *Client) ask(ctx context.Context, method, path string, in, out any) (*answer, error) {
	if err := c.cfg.Hold.holding(c.cfg.Now()); err != nil {
		return nil, err
	}
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	got, err := c.authorized(ctx, method, strings.TrimSuffix(c.cfg.Base.String(), "/")+path, body)
	if err != nil {
		return nil, err
	}
	wrap := func(err error) (*answer, error) {
		if c.cfg.Hide {
			return got, err
		}
		return got, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if err := c.refusal(got); err != nil {
		return wrap(err)
	}
	if len(got.body) > c.cfg.MaxAnswer {
		return wrap(fmt.Errorf("%w than %d bytes", errLarge, c.cfg.MaxAnswer))
	}
	if out == nil || len(got.body) == 0 {
		return got, nil
	}
	if err := json.Unmarshal(got.body, out); err != nil {
		return wrap(fmt.Errorf("the answer is not what %s says: %w", c.cfg.Name, err))
	}
	return got, nil
}

// authorized sends a request, and once more if its authorization had ended before its time.
// What is answered by 401 was not carried out.
func (c *Client) authorized(ctx context.Context, method, address string, body []byte) (*answer, error) {
	for again := false; ; again = true {
		// A token that was replaced counts from the next request on, without a restart.
		auth, err := c.cfg.Authorize(ctx)
		if err != nil {
			return nil, err
		}
		got, err := c.follow(ctx, method, address, auth, body)
		if err != nil || got.status != http.StatusUnauthorized || again || c.cfg.Renew == nil || !c.cfg.Renew(auth) {
			return got, err
		}
	}
}

// follow sends a request, and follows redirects on the forge itself: a repository that was
// renamed answers with its new place.
func (c *Client) follow(ctx context.Context, method, address, auth string, body []byte) (*answer, error) {
	for hop := 0; ; hop++ {
		got, err := c.send(ctx, method, address, auth, body)
		if err != nil || !slices.Contains(c.cfg.Follow, got.status) || hop == maxHops {
			return got, err
		}
		to, err := url.Parse(got.header.Get("Location"))
		if err != nil || to.Scheme != c.cfg.Base.Scheme || to.Host != c.cfg.Base.Host || to.User != nil {
			return got, nil //nolint:nilerr // the token goes to no other place, and the answer is the redirect
		}
		address = to.String()
	}
}

// send sends one request.
func (c *Client) send(ctx context.Context, method, address, auth string, body []byte) (*answer, error) {
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, address, in)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	maps.Copy(r.Header, c.cfg.Header)
	if c.cfg.Guard.refuses(c.cfg.Base) {
		return nil, fmt.Errorf("%s is not asked: %w", c.cfg.Called, ErrInside)
	}
	if c.cfg.Sign != nil {
		signed, err := c.cfg.Sign(body)
		if err != nil {
			return nil, err
		}
		maps.Copy(r.Header, signed)
	}
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	r.Header.Set("Content-Type", "application/json")
	var before *answer
	if c.cfg.Keep && method == http.MethodGet {
		if before = c.kept.get(address); before != nil {
			r.Header.Set("If-None-Match", before.header.Get("ETag"))
		}
	}
	resp, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, ErrInside) {
			return nil, fmt.Errorf("%s is not asked: %w", c.cfg.Called, ErrInside)
		}
		// The error may hold the url, and is the same to whoever waits: the forge is away.
		return nil, c.parked(away, c.cfg.Called+" does not answer")
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(c.cfg.MaxAnswer)+1))
	if err != nil {
		return nil, c.parked(away, c.cfg.Called+" stopped in the midst of an answer")
	}
	got := &answer{status: resp.StatusCode, header: resp.Header, body: data}
	switch {
	case got.status == http.StatusNotModified && before != nil:
		return before.withLink(resp.Header), nil
	case got.status == http.StatusOK && c.cfg.Keep && method == http.MethodGet && resp.Header.Get("ETag") != "":
		c.kept.put(address, got)
	}
	return got, nil
}

// withLink returns an answer that is the same as before, with the pages that there are now: another
// one behind it does not change what is on this one.
func (a *answer) withLink(now http.Header) *answer {
	if now.Get("Link") == "" {
		return a
	}
	same := *a
	same.header = a.header.Clone()
	same.header.Set("Link", now.Get("Link"))
	return &same
}
