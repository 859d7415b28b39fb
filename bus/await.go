package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/internal/retry"
)

var (
	// ErrCredentials says that the server refused the credentials, or that they
	// cannot be read, for longer than Await was to wait for that to change.
	ErrCredentials = errors.New("the credentials are refused")
	// ErrCertificate says that a certificate is not accepted, the server's here or
	// this client's there.
	ErrCertificate = errors.New("the certificate is not accepted")
	// ErrOwnCertificate says that the server does not accept this client's
	// certificate, or misses one. It is an ErrCertificate, too.
	ErrOwnCertificate = fmt.Errorf("%w: the server refuses this client's", ErrCertificate)
	// ErrNotAllowed is returned when the server does not let this account do
	// something. Its text names the right.
	ErrNotAllowed = conn.ErrNotAllowed
)

const (
	// firstPause and longestPause bound the pauses between two tries of Await.
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
	// probeTimeout bounds one question whether the journal can be read.
	probeTimeout = 2 * time.Second
)

// Waiting says how Await waits.
type Waiting struct {
	// RefusedFor is how long refused credentials may yet become good ones, from the
	// first refusal on: a server that is just starting may not have been told of
	// them.
	RefusedFor time.Duration
	// Report is called with the cause after every try that failed; it may be nil.
	Report func(cause error)
}

// Await is Connect for a service, which may start before its server, or before the
// server is complete. It returns a bus when the server can be asked for journals,
// and waits until then, whatever is missing: the name, the address, TLS, JetStream,
// its leader. It returns an error for whatever only a person can mend:
// ErrCertificate, ErrNotAllowed and a setting that is wrong at once, ErrCredentials
// after RefusedFor. When ctx ends, so does the wait, also in the midst of a try.
func Await(ctx context.Context, cfg Config, w Waiting) (*Bus, error) {
	if w.Report == nil {
		w.Report = func(error) {}
	}
	c := connection(cfg)
	opts, dialed, err := options(c, cfg)
	if err != nil {
		return nil, err
	}
	var refused refusals
	pace := retry.Pace{First: firstPause, Most: longestPause}
	for {
		err := cfg.readable()
		if err == nil {
			c.NC, err = connectOnce(ctx, cfg.URL, opts)
		}
		if err == nil {
			dialed.belongs(c.NC)
			break
		}
		if errors.Is(err, nats.ErrNoServers) && dialed.last() != nil {
			err = dialed.last()
		}
		final, err := classify(err)
		if errors.Is(err, ErrCredentials) {
			final = refused.since(time.Now()) >= w.RefusedFor
		} else {
			refused.end()
		}
		if final || ctx.Err() != nil {
			return nil, err
		}
		w.Report(err)
		if pace.Sleep(ctx) != nil {
			return nil, err
		}
	}
	b, err := assemble(c, cfg.Groups)
	if err != nil {
		return nil, err
	}
	if err := b.awaitJournal(ctx, w.Report); err != nil {
		c.NC.Close()
		return nil, err
	}
	return b, nil
}

// readable returns why the token cannot be read.
func (cfg Config) readable() error {
	if cfg.ReadToken == nil {
		return nil
	}
	if _, err := cfg.ReadToken(); err != nil {
		return fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	return nil
}

// connectOnce tries each server once. It does not wait for the client when ctx ends.
func connectOnce(ctx context.Context, servers string, opts []nats.Option) (*nats.Conn, error) {
	type outcome struct {
		nc  *nats.Conn
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		nc, err := nats.Connect(servers, opts...)
		done <- outcome{nc, err}
	}()
	select {
	case o := <-done:
		return o.nc, o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.nc != nil {
				o.nc.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// dialer connects as the client itself does, and keeps the error: the client drops
// that a connection was refused. It also has the key read again.
type dialer struct {
	err atomic.Pointer[error]
	key *keyFile // nil without an nkey
}

// belongs says of which connection the dialer is, once it is made.
func (d *dialer) belongs(nc *nats.Conn) {
	if d.key != nil {
		d.key.belongs(nc)
	}
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	if d.key != nil {
		d.key.again()
	}
	nc, err := (&net.Dialer{Timeout: dialTimeout}).Dial(network, address)
	if err != nil {
		d.err.Store(&err)
	}
	return nc, err
}

// last returns the error of the last connection that failed; nil if none did.
func (d *dialer) last() error {
	if err := d.err.Load(); err != nil {
		return *err
	}
	return nil
}

// refusals remembers since when credentials have been refused. The zero value is
// ready.
type refusals struct{ first time.Time }

// since returns for how long they have been refused without another cause between.
func (r *refusals) since(now time.Time) time.Duration {
	if r.first.IsZero() {
		r.first = now
	}
	return now.Sub(r.first)
}

// end notes that another cause was found.
func (r *refusals) end() { r.first = time.Time{} }

// classify returns an error of a connection with its kind, and whether waiting
// cannot help.
func classify(err error) (final bool, _ error) {
	switch {
	case errors.Is(err, ErrCertificate):
		return true, err
	case errors.Is(err, ErrCredentials):
		return false, err
	case isRefusal(err):
		return false, fmt.Errorf("%w: %w", ErrCredentials, err)
	case isOwnCertificate(err):
		return true, fmt.Errorf("%w: %w", ErrOwnCertificate, err)
	case isCertificate(err):
		return true, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	if bad, ok := errors.AsType[*url.Error](err); ok {
		return true, fmt.Errorf("not a URL of a NATS server: %w", bad.Err) // the URL may hold a password
	}
	return false, err
}

// isRefusal reports whether the server does not take the credentials, or the client
// cannot read or use them.
func isRefusal(err error) bool {
	for _, refused := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, refused) {
			return true
		}
	}
	_, file := errors.AsType[*fs.PathError](err)
	return file || strings.Contains(err.Error(), "nkey") || strings.Contains(err.Error(), "key pair")
}

// isCertificate reports whether the server's certificate is at fault.
func isCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.HostnameError](err)
	return ok
}

// isOwnCertificate reports whether the server says that a certificate is at fault.
func isOwnCertificate(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && strings.Contains(op.Error(), "certificate")
}

// awaitJournal waits until the journal can be read, or the server says that no
// runner has made it yet. Either needs JetStream and the leader that a reader would
// ask.
func (b *Bus) awaitJournal(ctx context.Context, report func(error)) error {
	pace := retry.Pace{First: firstPause, Most: longestPause}
	for {
		err := b.conn.Probe(ctx, probeTimeout)
		if err == nil || errors.Is(err, ErrNotAllowed) || ctx.Err() != nil {
			return err
		}
		report(err)
		if pace.Sleep(ctx) != nil {
			return err
		}
	}
}

// AwaitStreams calls Ensure until it succeeds. While JetStream is not complete it
// waits, and logs that now and then. It returns at once with an error that waiting
// cannot mend: ErrNotAllowed, ErrReplicas, streams that others have made with the
// same subjects.
func (b *Bus) AwaitStreams(ctx context.Context) error {
	pace := retry.Pace{First: firstPause, Most: longestPause}
	var notices retry.Notices
	for {
		err := b.Ensure(ctx)
		switch {
		case err == nil && notices.Any():
			b.conn.Log.InfoContext(ctx, "the streams are there")
			return nil
		case err == nil, isFinal(err), errors.Is(err, nats.ErrConnectionClosed):
			return err
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), err)
		}
		if notices.Due(time.Now()) {
			b.conn.Log.WarnContext(ctx, "the streams cannot be made yet; waiting", slog.String("server", b.conn.NC.ConnectedUrlRedacted()), slog.Any("error", err))
		}
		if pace.Sleep(ctx) != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}
