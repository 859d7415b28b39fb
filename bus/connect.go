package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/alive"
	"github.com/pfl-forge/pfl-forge/proof"
)

// dialTimeout bounds the connection to one server, and each step of the greeting.
const dialTimeout = 2 * time.Second

// reconnectDelay bounds the pause between two attempts to connect anew. It is less
// than Guard waits for results that workers hold.
const reconnectDelay = 500 * time.Millisecond

// Config says how to reach the server. At most one of Token, ReadToken, Creds and
// NKey is set, or the two of a login: ReadToken and NKey.
type Config struct {
	// URL is nats://host:port; several are separated by commas.
	URL   string
	Token string
	// ReadToken is asked for the token before each connection, so that it may change.
	ReadToken func() (string, error)
	// Creds is the path of a credentials file; empty for none.
	Creds string
	// NKey is the path of a file with the seed of an nkey; empty for none. It is read
	// again for each connection, so that the key may be replaced.
	NKey string
	TLS  TLS
	// Name is that of the connection, for the server's operator.
	Name string
	// InboxPrefix begins the subjects of answers, if the account may not listen on
	// _INBOX.>; it begins with _INBOX.
	InboxPrefix string
	// Person is the name of a person's account, which reads no streams: a runner
	// reads for it what is of Project. Empty for an account that reads streams
	// itself.
	Person  string
	Project forge.ProjectID
	// Singly has stored messages read one by one, as all accounts but a
	// runner's have to: none other is sent messages as they are stored.
	Singly bool
	// Replicas is the number of copies of every stream: 1 on a single server, 3 on a
	// cluster. 0 leaves existing streams as they are.
	Replicas int
	// Groups says whose replicas get the commands of which project. Runners need it.
	Groups subjects.Groups
	Logger *slog.Logger
	// Key signs the requests and results of the account; nil: nothing is signed.
	Key proof.Source
	// Alive watches the loops of the connection; nil: nothing does.
	Alive *alive.Watch
}

// connection returns a Conn with everything of a Config that has nothing to do
// with the way to the server.
func connection(cfg Config) *conn.Conn {
	c := conn.New(cfg.Logger, cfg.Replicas)
	c.Alive, c.Signer.Key, c.Singly = cfg.Alive, cfg.Key, cfg.Singly
	return c
}

// dial connects to the server, and tries for as long as Connect says.
func dial(ctx context.Context, cfg Config) (*conn.Conn, error) {
	c := connection(cfg)
	if cfg.Person != "" {
		if err := c.AsPerson(cfg.Person, cfg.Project); err != nil {
			return nil, fmt.Errorf("connect to the NATS server: %w", err)
		}
	}
	opts, dialed, err := options(c, cfg)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		c.NC, err = nats.Connect(cfg.URL, opts...)
		if err == nil {
			dialed.belongs(c.NC)
			break
		}
		if !errors.Is(err, nats.ErrNoServers) && !errors.Is(err, nats.ErrTimeout) {
			return nil, fmt.Errorf("connect to the NATS server: %w", err)
		}
		if waitErr := conn.Sleep(ctx, conn.Backoff(attempt)); waitErr != nil {
			return nil, fmt.Errorf("connect to the NATS server: %w: does it run, and is that its address?", err)
		}
	}
	return c, nil
}

// options returns the options of a connection that never gives up, with whatever
// credentials there are, and the dialer among them.
func options(c *conn.Conn, cfg Config) ([]nats.Option, *dialer, error) {
	dialed := &dialer{}
	opts := []nats.Option{
		nats.SetCustomDialer(dialed),
		nats.Name(cfg.Name),
		nats.Timeout(dialTimeout),
		nats.PingInterval(20 * time.Second),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(func(attempts int) time.Duration { return min(conn.Backoff(attempts), reconnectDelay) }),
		nats.IgnoreAuthErrorAbort(), // credentials may be mended while we try
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.Log.Warn("lost the connection to the NATS server", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			c.Log.Info("connected to the NATS server again")
			c.Reconnected()
			c.Poke()
		}),
		nats.ErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			if errors.Is(err, nats.ErrPermissionViolation) { // until somebody changes the account
				c.Log.Error("the NATS server refuses what this account wants", "subject", subject, "error", err)
			} else {
				c.Log.Warn("the NATS server reports an error", "subject", subject, "error", err)
			}
			c.Reported(nc, err)
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(c.Closed) }),
	}
	if cfg.InboxPrefix != "" {
		if !strings.HasPrefix(cfg.InboxPrefix, wire.Inbox) {
			return nil, nil, fmt.Errorf("inbox prefix %q does not begin with _INBOX", cfg.InboxPrefix)
		}
		opts = append(opts, nats.CustomInboxPrefix(cfg.InboxPrefix))
	}
	opts = append(opts, cfg.TLS.options()...)
	switch {
	case cfg.Token != "":
		opts = append(opts, nats.Token(cfg.Token))
	case cfg.ReadToken != nil:
		opts = append(opts, nats.TokenHandler(func() string {
			token, err := cfg.ReadToken()
			if err != nil {
				c.Log.Warn("cannot read the token; trying again", "error", err)
			}
			return token
		}))
	case cfg.Creds != "":
		opts = append(opts, nats.UserCredentials(cfg.Creds))
	}
	if cfg.NKey != "" {
		dialed.key = &keyFile{path: cfg.NKey, log: c.Log}
		opts = append(opts, dialed.key.option)
	}
	return opts, dialed, nil
}
