package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// requestTimeout bounds one round trip to the server. Callers that pass a
// context with a later deadline wait longer by trying again.
const requestTimeout = 5 * time.Second

// reconnectDelay bounds the pause between two attempts to connect anew. It is less
// than Guard waits for results that workers hold.
const reconnectDelay = 500 * time.Millisecond

// Config says how to reach the server. At most one of Token, ReadToken, Creds and
// NKey is set.
type Config struct {
	URL   string // nats://host:port, several separated by commas
	Token string
	// ReadToken is asked for the token before each connection, so that it may change.
	ReadToken func() (string, error)
	Creds     string // path of a credentials file
	NKey      string // path of a file with an nkey seed
	Name      string // of the connection, for the server's operator
	// InboxPrefix is what answers come on, if the account may not listen on _INBOX.>; it
	// begins with _INBOX.
	InboxPrefix string
	Replicas    int // of every stream: 1 on a single server, 3 on a cluster; 0 leaves existing streams as they are
	Logger      *slog.Logger
}

// Bus is a connection to the server, divided into doors by what their users need. It is
// safe for concurrent use, and reconnects by itself for as long as it takes.
type Bus struct {
	conn         *Conn
	stalledAfter time.Duration // see there

	Journal     *Journal     // the machines' journals, and the summaries in them
	Events      *Events      // a runner's side: what machines have to decide on
	Effects     *Effects     // a runner's side: what follows from decisions
	Changes     *Changes     // what happens to intents, for everybody to follow
	Commands    *Commands    // a worker's side: what it has to do
	Results     *Results     // a worker's side: what came of it
	Leases      *Leases      // the right to work on a task
	Submissions *Submissions // what people and systems ask for
	Leftovers   *Leftovers   // what finished intents left, and its removal
	Live        *Live        // messages that are not stored: progress and the like
	Transcripts *Transcripts // what agents and commands did, line by line
	Objects     *Objects     // files that workers hand on to one another
}

// Conn is the connection that the doors of a bus share.
type Conn struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	log      *slog.Logger
	replicas int
	changed  chan struct{} // holds an element after a reconnect, for Guard
	appended chan struct{} // holds an element after a journal went on, for Changes.Publish
	closed   chan struct{}

	connection atomic.Pointer[connection] // the present one

	answerTimeout time.Duration // see there
}

// Connect returns a connected bus. While the server cannot be reached it tries
// again until ctx ends; refused credentials are an error at once. No error names
// the URL, which may hold a password.
func Connect(ctx context.Context, cfg Config) (*Bus, error) {
	c, err := dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	journal := &Journal{conn: c}
	results := &Results{conn: c}
	live := &Live{conn: c}
	leases := &Leases{conn: c}
	submissions := &Submissions{conn: c, journal: journal}
	return &Bus{
		conn: c, stalledAfter: stalledAfter,
		Journal:     journal,
		Events:      &Events{conn: c, submissions: submissions},
		Effects:     &Effects{conn: c, live: live},
		Changes:     &Changes{conn: c},
		Commands:    &Commands{conn: c, journal: journal, results: results, leases: leases},
		Results:     results,
		Leases:      leases,
		Submissions: submissions,
		Leftovers:   &Leftovers{conn: c},
		Live:        live,
		Transcripts: &Transcripts{conn: c},
		Objects:     &Objects{conn: c, most: MaxObject},
	}, nil
}

// dial connects.
func dial(ctx context.Context, cfg Config) (*Conn, error) {
	c := &Conn{
		log: cfg.Logger, replicas: cfg.Replicas,
		changed: make(chan struct{}, 1), appended: make(chan struct{}, 1), closed: make(chan struct{}),
		answerTimeout: answerTimeout,
	}
	c.connection.Store(newConnection())
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	opts, err := c.options(cfg)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		c.nc, err = nats.Connect(cfg.URL, opts...)
		if err == nil {
			break
		}
		if !errors.Is(err, nats.ErrNoServers) && !errors.Is(err, nats.ErrTimeout) {
			return nil, fmt.Errorf("connect to the NATS server: %w", err)
		}
		if waitErr := sleep(ctx, backoff(attempt)); waitErr != nil {
			return nil, fmt.Errorf("connect to the NATS server: %w", err)
		}
	}
	c.js, err = jetstream.New(c.nc,
		jetstream.WithDefaultTimeout(requestTimeout),
		jetstream.WithPublishAsyncTimeout(requestTimeout))
	if err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("set up JetStream: %w", err)
	}
	return c, nil
}

func (c *Conn) options(cfg Config) ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name(cfg.Name),
		nats.Timeout(2 * time.Second),
		nats.PingInterval(20 * time.Second),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(func(attempts int) time.Duration { return min(backoff(attempts), reconnectDelay) }),
		nats.IgnoreAuthErrorAbort(), // credentials may be mended while we try
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.log.Warn("lost the connection to the NATS server", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			c.log.Info("connected to the NATS server again")
			c.reconnected()
			c.poke()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			c.log.Error("the NATS server reports an error", "subject", subject, "error", err)
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	if cfg.InboxPrefix != "" {
		if inboxOnly(cfg.InboxPrefix) == "" {
			return nil, fmt.Errorf("inbox prefix %q does not begin with _INBOX", cfg.InboxPrefix)
		}
		opts = append(opts, nats.CustomInboxPrefix(cfg.InboxPrefix))
	}
	switch {
	case cfg.Token != "":
		opts = append(opts, nats.Token(cfg.Token))
	case cfg.ReadToken != nil:
		opts = append(opts, nats.TokenHandler(func() string {
			token, err := cfg.ReadToken()
			if err != nil {
				c.log.Error("cannot read the token; trying again", "error", err)
			}
			return token
		}))
	case cfg.Creds != "":
		opts = append(opts, nats.UserCredentials(cfg.Creds))
	case cfg.NKey != "":
		opt, err := nats.NkeyOptionFromSeed(cfg.NKey)
		if err != nil {
			return nil, fmt.Errorf("read the nkey seed: %w", err)
		}
		opts = append(opts, opt)
	}
	return opts, nil
}

// Close lets what is under way finish and closes the connection. Consumers have
// to be stopped before.
func (b *Bus) Close() {
	if err := b.conn.nc.Drain(); err != nil {
		b.conn.nc.Close()
	}
	select {
	case <-b.conn.closed:
	case <-time.After(requestTimeout):
		b.conn.nc.Close()
		<-b.conn.closed
	}
}

// poke asks Guard to look at once.
func (c *Conn) poke() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// backoff is how long to wait after a number of failures: 20 ms, then longer,
// up to 2 s.
func backoff(failures int) time.Duration {
	return min(20*time.Millisecond<<min(failures, 10), 2*time.Second)
}

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
