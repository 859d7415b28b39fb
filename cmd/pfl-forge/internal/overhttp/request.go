package overhttp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/retry"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// request is one that can be sent again.
type request struct {
	method, address string
	// query is nil for none.
	query url.Values
	// body is JSON; nil for none.
	body []byte
	// key is the Idempotency-Key; empty for none.
	key string
	// lastEvent is the id of the last event that came of a stream; empty for none.
	lastEvent string
}

// maxProblem bounds an answer that is no success, in bytes.
const maxProblem = 64 << 10

// do sends a request until it is answered for good, and returns the JSON of the
// answer. unsure says that it was sent and not answered, by which it may have
// been done. Errors: *Refusal, and those of a connection, which name no token.
func (c *Client) do(ctx context.Context, r *request) (answer []byte, unsure bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.bounds.all)
	defer cancel()
	pace := retry.Pace{First: 250 * time.Millisecond, Most: 4 * time.Second}
	for try := 1; ; try++ {
		answer, err = c.once(ctx, r)
		if err == nil {
			return answer, unsure, nil
		}
		unsure = unsure || mayBeDone(err)
		wait, again := c.again(err)
		if !again || try == c.bounds.tries || ctx.Err() != nil {
			return nil, unsure, err
		}
		c.log.DebugContext(ctx, "asking again", "method", r.method, "try", try, "error", err)
		if wait > 0 || try > 1 { // most of the others end before a person wonders
			c.waits(err)
		}
		if sleep(ctx, cmp.Or(wait, pace.Pause())) != nil {
			return nil, unsure, err
		}
	}
}

// loginError says that there is no token of a login, so that nothing was sent.
type loginError struct{ error }

// Unwrap returns the reason.
func (e *loginError) Unwrap() error { return e.error }

// mayBeDone reports whether a request that failed may have been done
// nevertheless: it was sent, and a gateway has not said what became of it.
func mayBeDone(err error) bool {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.unsure()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	_, garbage := errors.AsType[*garbageError](err)
	_, unsent := errors.AsType[*loginError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return !garbage && !unsent && !untrusted
}

// again reports whether a request that failed is sent again, and when; 0 leaves that to us. It is
// where the failure may end by itself: the gateway is busy or restarts, a proxy before it does
// not reach it, the connection broke, or the issuer of a login does not answer. A server that
// answers something else than a gateway, or has a certificate that is not known, does so again.
func (c *Client) again(err error) (wait time.Duration, again bool) {
	if r, ok := errors.AsType[*Refusal](err); ok {
		switch r.Status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return r.RetryAfter, r.RetryAfter <= c.bounds.pause
		}
		return 0, false
	}
	if _, garbage := errors.AsType[*garbageError](err); garbage {
		return 0, false
	}
	if _, unsent := errors.AsType[*loginError](err); unsent {
		return 0, errors.Is(err, identity.ErrAway)
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return 0, !untrusted
}

// briefly returns the reason for which there is no answer, without advice: to
// ask again is done already.
func briefly(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return fmt.Sprintf("the gateway says %d %s", r.Status, http.StatusText(r.Status))
	}
	return err.Error()
}

// garbageError says that an answer is none of a gateway.
type garbageError struct{ text string }

func (e *garbageError) Error() string { return e.text }

// garbage returns a garbageError.
func garbage(format string, args ...any) error { return &garbageError{fmt.Sprintf(format, args...)} }

// once sends a request once. An answer that ends before its end is an error,
// and so is one that is no JSON, or has another type of content: a page to log
// in is answered with the status of a success.
func (c *Client) once(ctx context.Context, r *request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.bounds.answer)
	defer cancel()
	response, err := c.send(ctx, r, "application/json")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, c.bounds.bytes+1))
	switch {
	case int64(len(body)) > c.bounds.bytes:
		return nil, garbage("the server answers with more than %d bytes, which is not read", c.bounds.bytes)
	case err != nil:
		return nil, fmt.Errorf("the answer did not come as a whole: %w", c.plain(err))
	}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, garbage("the server answers with %s where a gateway answers with JSON: is that the address of one, or of a page to log in before it?",
			content(kind))
	}
	if !json.Valid(body) {
		return nil, garbage("the answer of the server is not JSON")
	}
	return body, nil
}

// send sends a request and returns an answer that is a success; its body is to be
// closed. A token that the gateway does not take is replaced once by the next one of the
// login, if there is one: it may have expired by the clock of the gateway, which counts.
func (c *Client) send(ctx context.Context, r *request, accept string) (*http.Response, error) {
	token, err := c.token(ctx, "")
	if err != nil {
		return nil, &loginError{err}
	}
	response, err := c.sendAs(ctx, token, r, accept)
	if refused, ok := errors.AsType[*Refusal](err); !ok || refused.Status != http.StatusUnauthorized {
		return response, err
	}
	next, failed := c.token(ctx, token)
	switch {
	case errors.Is(failed, identity.ErrAway):
		return nil, &loginError{failed}
	case failed != nil || next == token:
		return nil, err // the gateway says what to do
	}
	return c.sendAs(ctx, next, r, accept)
}

// sendAs sends a request with a token. Of an answer that is no success the body is read here, as
// far as a problem has room. The log has the path, the status and the gateway's id of the
// request, which the operator of the gateway can look up, and neither the token nor any content.
func (c *Client) sendAs(ctx context.Context, token string, r *request, accept string) (*http.Response, error) {
	address := r.address
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	ask, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	ask.Header.Set("Authorization", "Bearer "+token)
	ask.Header.Set("Accept", accept)
	ask.Header.Set("User-Agent", "pfl-forge")
	if r.body != nil {
		ask.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		ask.Header.Set("Idempotency-Key", r.key)
	}
	if r.lastEvent != "" {
		ask.Header.Set("Last-Event-ID", r.lastEvent)
	}
	response, err := c.http.Do(ask)
	if err != nil {
		return nil, c.plain(err)
	}
	c.log.DebugContext(ctx, "asked the gateway", "method", r.method, "path", ask.URL.Path, "status", response.StatusCode,
		"request", term.Short(response.Header.Get("Request-Id"), 40))
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusCreated || response.StatusCode == http.StatusAccepted {
		return response, nil
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return nil, garbage("the server sends on to %s, where nothing was sent: give the address of the gateway itself as --server", where(response))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil {
		return nil, fmt.Errorf("the answer did not come as a whole: %w", c.plain(err))
	}
	refused := refusalOf(response.StatusCode, response.Header, body)
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		refused.RetryAfter = time.Duration(min(seconds, maxRetryAfter)) * time.Second
	}
	return nil, refused
}

// maxRetryAfter bounds the pause that a Retry-After is believed to say, in
// seconds: it is only told to a person.
const maxRetryAfter = 24 * 60 * 60

// where names the host that a redirect leads to.
func where(response *http.Response) string {
	to, err := response.Location()
	if err != nil {
		return "nowhere"
	}
	return term.Short(to.Scheme+"://"+to.Host, 100)
}

// plain returns the error of a connection as a person reads it: with the host,
// and without the path. A certificate that cannot be checked names the flag.
func (c *Client) plain(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return fmt.Errorf("%s: %w; --tls-ca names a file with the authorities of your organisation", c.base.Host, err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer in time: %w", err)
	}
	return fmt.Errorf("%s: %w", c.base.Host, err)
}

// sleep returns after some time, or with the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
