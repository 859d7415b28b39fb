package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Config says which forge it is, and as whom we are there.
type Config struct {
	// URL is the forge's, such as https://git.example.com. Without TLS it has to be on this machine.
	URL string
	// TokenFile has a token of our account. It is read for each request, so that it can be replaced.
	TokenFile string
	// Bots are logins of accounts that are programs. Gitea does not tell.
	Bots []string
	// Now is the clock; nil for that of the machine.
	Now func() time.Time
}

// Client is a forges.Forge.
type Client struct {
	cfg  Config
	base *url.URL
	http *http.Client
}

const (
	// maxAnswer bounds an answer of the forge, in bytes, and patience the time for it.
	maxAnswer = 8 << 20
	patience  = 20 * time.Second
	// page is how many things one request lists, and maxPages how many pages are read.
	page     = 50
	maxPages = 40
	// away is for how long a forge is left alone that does not answer, and maxAway for how long at most one that says so itself.
	away    = 30 * time.Second
	maxAway = time.Hour
	// maxReason bounds the forge's reason for a refusal, in bytes.
	maxReason = 300
	// later is the reason for a merge that is refused because Gitea has not computed yet whether it can be done. It has no other sign.
	later = "Please try again later"
)

// New returns a Client, or an error that names the setting.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("url: has to be that of the forge, such as https://git.example.com, without a user or a query")
	}
	if base.Scheme != "https" && !(base.Scheme == "http" && isLoopback(base.Hostname())) {
		return nil, errors.New("url: has to begin with https, unless the forge is on this machine: the token would be there for all to read")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Client{cfg: cfg, base: base}
	c.http = &http.Client{
		Timeout:       patience,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	_, err = c.token()
	return c, err
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close closes connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// token returns the token as it is now.
func (c *Client) token() (string, error) {
	text, err := os.ReadFile(c.cfg.TokenFile)
	if err != nil {
		return "", fmt.Errorf("token_file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("token_file: it holds no token of one line")
	}
	return token, nil
}

// call asks the forge. path has escaped parts; in and out are JSON, nil for none.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	// A token that was replaced counts from the next request on, without a restart.
	token, err := c.token()
	if err != nil {
		return err
	}
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base.String(), "/")+"/api/v1"+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "token "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// The error may hold the url, and is the same to whoever waits: the forge is away.
		return c.parked(away, "the forge does not answer")
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return c.parked(away, "the forge stopped in the midst of an answer")
	}
	if err := c.refusal(resp, data); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if len(data) > maxAnswer {
		return fmt.Errorf("%s %s: the answer has more than %d bytes", method, path, maxAnswer)
	}
	if out == nil || len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s %s: the answer is not what Gitea says: %w", method, path, err)
	}
	return nil
}

// refusal returns the error of an answer; nil if it is none. The text of the answer is the forge's, or that of whoever stands before it:
// only where it is a reason for people it is in the error, as a short line.
func (c *Client) refusal(resp *http.Response, data []byte) error {
	// 403 is also for rights that are missing; then the limit has something left, or is not there, and nothing says when to come again.
	limited := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusForbidden &&
		(resp.Header.Get("X-Ratelimit-Remaining") == "0" || resp.Header.Get("Retry-After") != "")
	switch code := resp.StatusCode; {
	case limited:
		return c.parked(c.wait(resp.Header), "the limits of the forge are used up")
	case code < 300:
		return nil
	case code < 400:
		return fmt.Errorf("the forge answers with a redirect (%d); its url may be another one", code)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fmt.Errorf("%w (%d)", forges.ErrDenied, code)
	case code == http.StatusNotFound, code == http.StatusGone:
		return forges.ErrNotFound
	case code >= 500:
		return c.parked(c.wait(resp.Header), fmt.Sprintf("the forge has a fault of its own (%d)", code))
	default:
		var said struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(data, &said) // without one there is only the number
		reason := strings.ToValidUTF8(said.Message[:min(len(said.Message), maxReason)], "")
		return &forges.RefusedError{Code: code, Again: code == http.StatusMethodNotAllowed && reason == later, Reason: term.Line(reason)}
	}
}

// parked returns the error for a forge that is left alone for a while.
func (c *Client) parked(d time.Duration, reason string) error {
	return &forges.ParkedError{Until: c.cfg.Now().Add(d), Reason: reason}
}

// wait returns how long the forge wants to be left alone: Retry-After in seconds or as a date, or the time at which a limit ends.
func (c *Client) wait(h http.Header) time.Duration {
	now := c.cfg.Now()
	d := away
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); err == nil {
		d = time.Duration(min(max(seconds, 0), int(maxAway/time.Second))) * time.Second
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		d = at.Sub(now)
	} else if at, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); err == nil {
		d = time.Unix(at, 0).Sub(now)
	}
	return min(max(d, time.Second), maxAway)
}

// repoPath returns the path of a repository, and of something in it.
func repoPath(name string, parts ...any) (string, error) {
	if err := intake.CheckRepository(name); err != nil {
		return "", fmt.Errorf("repository %.100q: %w", name, err)
	}
	path := []string{"/repos", name}
	for _, p := range parts {
		path = append(path, url.PathEscape(fmt.Sprint(p)))
	}
	return strings.Join(path, "/"), nil
}

// isBot reports whether an account is a program: by its number, which is negative for those of Gitea itself, by the operator's
// word, or by the name that bots have on other forges.
func (c *Client) isBot(id int64, login string) bool {
	return id <= 0 || strings.HasSuffix(login, "[bot]") ||
		slices.ContainsFunc(c.cfg.Bots, func(b string) bool { return strings.EqualFold(b, login) })
}
