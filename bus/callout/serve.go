package callout

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/proof"
)

const (
	// replicas is the queue that all replicas share.
	replicas = "pfl-forge-auth"
	// atATime bounds how many connections are decided about at once. More are not
	// answered, and the server lets their clients try again.
	atATime = 64
	// decideFor bounds a decision: the server waits little longer.
	decideFor = 4 * time.Second
	// listenFor bounds how long the server takes to note what is listened on.
	listenFor = 10 * time.Second
	// DefaultLifetime is for how long a connection lasts before it is decided about
	// anew.
	DefaultLifetime = 10 * time.Minute
)

// Config says by what the service decides.
type Config struct {
	// Seed is that of the nkey of the account auth. The keys that sign credentials
	// and certificates follow from it.
	Seed []byte
	// Book says whose a token is.
	Book *identity.Book
	// Accounts returns the accounts that the server's configuration has, as they are
	// now.
	Accounts func() ([]access.Account, error)
	// Lifetime is for how long a connection lasts before it has to be admitted again.
	Lifetime time.Duration
	// Now is the clock.
	Now func() time.Time
	// Log hears who is let in, and who is not and why.
	Log *slog.Logger
	// Ready is called when the service answers; it may be nil.
	Ready func()
}

// service answers the server and people.
type service struct {
	Config
	issuer nkeys.KeyPair
	key    *proof.Key
}

// Serve answers on a connection of the account auth until ctx ends or the connection
// does.
func Serve(ctx context.Context, nc *nats.Conn, cfg Config) error {
	s := &service{Config: cfg}
	var err error
	if s.issuer, err = access.Issuer(cfg.Seed); err != nil {
		return err
	}
	defer s.issuer.Wipe()
	if s.key, err = proof.Derive(cfg.Seed, string(access.Auth)); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, atATime)
	each := func(handle func(context.Context, *nats.Msg) error) nats.MsgHandler {
		return func(m *nats.Msg) {
			select {
			case slots <- struct{}{}:
			default:
				s.Log.WarnContext(ctx, "too many connections at once: one is not decided about", "at_a_time", atATime)
				return
			}
			running.Go(func() {
				defer func() { <-slots }()
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), decideFor)
				defer cancel()
				if err := handle(ctx, m); err != nil {
					s.Log.WarnContext(ctx, "a request is not answered", "error", err)
				}
			})
		}
	}
	var subs []*nats.Subscription
	for subject, handle := range map[string]func(context.Context, *nats.Msg) error{
		subjects.ServerAsks: s.serverAsks, subjects.EveryCertify: s.personAsks,
	} {
		sub, err := nc.QueueSubscribe(subject, replicas, each(handle))
		if err != nil {
			return fmt.Errorf("listen on %s: %w", subject, err)
		}
		subs = append(subs, sub)
	}
	if err := nc.FlushTimeout(listenFor); err != nil {
		return fmt.Errorf("listen for connections to decide about: %w", err)
	}
	if cfg.Ready != nil {
		cfg.Ready()
	}
	<-ctx.Done()
	for _, sub := range subs { // what came already is answered
		if err := sub.Drain(); err != nil {
			return err
		}
	}
	for _, sub := range subs {
		for sub.IsValid() && !nc.IsClosed() {
			if err := nc.Flush(); err != nil {
				break
			}
		}
	}
	return nil
}

// serverAsks answers the server about one connection. A request that cannot be read
// is not answered: the server takes that for a no when its time is over.
func (s *service) serverAsks(ctx context.Context, m *nats.Msg) error {
	req, err := jwt.DecodeAuthorizationRequestClaims(string(m.Data))
	if err != nil {
		return fmt.Errorf("the request of the server: %w", err)
	}
	a, err := s.admit(ctx, req)
	if err != nil {
		s.Log.WarnContext(ctx, "not let in", "from", req.ClientInformation.Host, "connection", fmt.Sprintf("%.100q", req.ConnectOptions.Name), "error", err)
	} else {
		s.Log.DebugContext(ctx, "let in", "account", a.name, "from", req.ClientInformation.Host, "until", a.until)
	}
	text, err := s.answer(req, a)
	if err != nil {
		return err
	}
	return m.Respond([]byte(text))
}
