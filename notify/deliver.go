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
	"strconv"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/process"
)

const (
	webhookTimeout = 10 * time.Second
	commandTimeout = 20 * time.Second
	commandOutput  = 64 << 10
	maxRetryAfter  = 5 * time.Minute
)

// uselessError is one that trying again does not help.
type uselessError struct{ err error }

func (e *uselessError) Error() string { return e.err.Error() }
func (e *uselessError) Unwrap() error { return e.err }

// laterError is one that says when to try again.
type laterError struct {
	after time.Duration
	err   error
}

func (e *laterError) Error() string { return e.err.Error() }
func (e *laterError) Unwrap() error { return e.err }

// send delivers a notification once.
func (t *Target) send(ctx context.Context, client *http.Client, m message) error {
	if len(t.Command) > 0 {
		return t.run(ctx, m)
	}
	return t.post(ctx, client, m)
}

// run gives the event to a command, on its standard input and as variables.
func (t *Target) run(ctx context.Context, m message) error {
	env := []string{"FORGE_EVENT=" + m.kind, "FORGE_TEXT=" + m.text, "FORGE_COUNT=" + strconv.Itoa(len(m.told))}
	if len(m.told) == 1 {
		one := m.told[0]
		env = append(env, "FORGE_PROJECT="+string(one.Project), "FORGE_INTENT="+string(one.Intent),
			"FORGE_STATUS="+string(one.Status), "FORGE_WAITING="+string(one.Waiting))
	}
	report, err := process.Run(ctx, process.Command{
		Path: t.Command[0], Args: t.Command[1:], Dir: os.TempDir(), Stdin: m.event, MergeStderr: true,
		Env:    process.Merge(os.Environ(), env),
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

// post sends the event to a webhook. No error tells the URL, which may be a secret.
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
	return answered(resp)
}

func newRequest(ctx context.Context, address, secret string, m message, now time.Time) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(m.event))
	if err != nil {
		return nil, &uselessError{errors.New("the webhook is no URL")}
	}
	r.Header.Set("Content-Type", "application/cloudevents+json")
	r.Header.Set("User-Agent", "pfl-forge")
	r.Header.Set("Forge-Event-Id", m.id)
	if secret != "" {
		r.Header.Set("Forge-Signature", sign(secret, now, m.event))
	}
	return r, nil
}

// sign returns t=<unix time>,v1=<hex of HMAC-SHA256 of "<unix time>.<body>">.
func sign(secret string, now time.Time, body []byte) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(at + "."))
	_, _ = mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// answered says what follows from a webhook's answer.
func answered(r *http.Response) error {
	err := fmt.Errorf("the webhook answers %s", r.Status)
	switch code := r.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		if s, e := strconv.Atoi(r.Header.Get("Retry-After")); e == nil && s > 0 {
			return &laterError{min(time.Duration(s)*time.Second, maxRetryAfter), err}
		}
		return err
	case code == http.StatusRequestTimeout || code == http.StatusTooEarly || code >= 500:
		return err
	}
	return &uselessError{err}
}
