package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/internal/environ"
)

const (
	// webhookTimeout bounds one request.
	webhookTimeout = 10 * time.Second
	// commandTimeout bounds one run of a command.
	commandTimeout = 20 * time.Second
	// commandOutput bounds the bytes of a command's output that are read.
	commandOutput = 64 << 10
	// maxRetryAfter bounds how long a webhook can ask us to wait.
	maxRetryAfter = 5 * time.Minute
)

// permanentError is an error of a delivery that will fail again, such as a webhook's 404.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// retryAfterError is an error of a delivery that may be repeated after a time.
type retryAfterError struct {
	after time.Duration
	err   error
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// send makes one attempt to deliver a message. Errors that are neither a permanentError nor
// a retryAfterError may be tried again at any time.
func (t *Target) send(ctx context.Context, client *http.Client, m message) error {
	if len(t.Command) > 0 {
		return t.run(ctx, m)
	}
	return t.post(ctx, client, m)
}

// run runs the target's command with the event on its standard input. For one change, the
// variables name the intent; for a digest they only count the changes.
func (t *Target) run(ctx context.Context, m message) error {
	env := []string{"FORGE_EVENT=" + m.kind, "FORGE_TEXT=" + m.text, "FORGE_COUNT=" + strconv.Itoa(len(m.changes))}
	if len(m.changes) == 1 {
		one := m.changes[0]
		env = append(env, "FORGE_PROJECT="+string(one.Project), "FORGE_INTENT="+string(one.Intent),
			"FORGE_STATUS="+string(one.Status), "FORGE_WAITING="+string(one.Waiting))
	}
	report, err := process.Run(ctx, process.Command{
		Path: t.Command[0], Args: t.Command[1:], Dir: os.TempDir(), Stdin: m.event, MergeStderr: true,
		Env:    process.Merge(withoutOurs(environ.All()), env),
		Limits: process.Limits{Wall: commandTimeout, OutputBytes: commandOutput},
	})
	if err != nil {
		return fmt.Errorf("run %s: %w", t.Command[0], err)
	}
	if report.ExitCode != 0 {
		return fmt.Errorf("%s ended with exit code %d", t.Command[0], report.ExitCode)
	}
	return nil
}

// ours are the beginnings of the names of variables that are meant for pfl-forge: its
// settings, among them ways into NATS, the keys of models, and where telemetry goes.
var ours = []string{"FORGE_", "ANTHROPIC_", "CLAUDE_CODE_", "OPENAI_", "GEMINI_", "GOOGLE_GEMINI_", "OTEL_"}

// withoutOurs returns an environment without those variables. A program that
// tells people needs its own, such as the token of a chat, and none of ours: it
// may print its environment, or be told by an event what to send.
func withoutOurs(environ []string) []string {
	return slices.DeleteFunc(environ, func(entry string) bool {
		return slices.ContainsFunc(ours, func(prefix string) bool { return strings.HasPrefix(entry, prefix) })
	})
}

// post sends the event to the target's webhook. No error holds the URL, which may be a
// secret. Redirects are not followed: they are answers that the webhook did not take it.
func (t *Target) post(ctx context.Context, client *http.Client, m message) error {
	address, secret := t.Webhook, ""
	var err error
	if t.WebhookFile != "" {
		if address, err = readSecret(t.WebhookFile); err != nil {
			return err
		}
	}
	if t.SecretFile != "" {
		if secret, err = readSecret(t.SecretFile); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	r, err := newRequest(ctx, address, secret, m, time.Now())
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		if hidden, ok := errors.AsType[*url.Error](err); ok {
			err = hidden.Err
		}
		return fmt.Errorf("the webhook cannot be reached: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	return checkStatus(resp)
}

// newRequest returns the request that a webhook gets: a CloudEvent in the structured mode.
func newRequest(ctx context.Context, address, secret string, m message, now time.Time) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(m.event))
	if err != nil {
		return nil, &permanentError{errors.New("the webhook is not a URL")}
	}
	r.Header.Set("Content-Type", "application/cloudevents+json")
	r.Header.Set("User-Agent", "pfl-forge")
	r.Header.Set("Forge-Event-Id", m.id)
	if secret != "" {
		r.Header.Set("Forge-Signature", sign(secret, now, m.event))
	}
	return r, nil
}

// sign returns the value of the header Forge-Signature:
//
//	t=<unix time>,v1=<hex of HMAC-SHA256 of "<unix time>.<body>">
//
// A receiver computes the same and refuses a time that is too long ago. So a
// third party that recorded an event cannot send it again later.
func sign(secret string, now time.Time, body []byte) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(at + "."))
	_, _ = mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// checkStatus returns nil for an answer that took the event, a permanentError for one that
// will not change, and a retryAfterError where the webhook says when to come back.
func checkStatus(r *http.Response) error {
	err := fmt.Errorf("the webhook answers %s", r.Status)
	switch code := r.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		if s, e := strconv.Atoi(r.Header.Get("Retry-After")); e == nil && s > 0 {
			return &retryAfterError{time.Duration(min(s, int(maxRetryAfter/time.Second))) * time.Second, err} // more seconds than a Duration holds would be none
		}
		return err
	case code == http.StatusRequestTimeout || code == http.StatusTooEarly || code >= 500:
		return err
	}
	return &permanentError{err}
}
