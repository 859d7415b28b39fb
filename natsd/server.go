package natsd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// lockPatience bounds how long Start waits for a lock without a living owner.
	lockPatience = time.Second
	// readyTimeout bounds how long a server may take until clients can connect.
	readyTimeout = 10 * time.Second
)

// Server is a running nats-server that owns its store. Several goroutines may use it. Whoever
// started it calls [Server.Shutdown].
type Server struct {
	cfg      Config
	dir      *storeDir
	lock     *lock
	nats     *server.Server // nil if it could not be made
	endpoint Endpoint
	log      *slog.Logger
	// probing lets one goroutine write a probe at a time.
	probing sync.Mutex
	watcher sync.WaitGroup
	once    sync.Once
	// failed is closed when the store has failed, closing when Shutdown begins, and done when
	// it is through.
	failed  chan struct{}
	closing chan struct{}
	done    chan struct{}
}

// Start takes the store, starts a server on it and returns when clients can connect and
// JetStream has recovered its streams. If another process owns the store, the error is a
// [*HeldError]; after any error nothing is left behind. ctx bounds the start only: the server
// runs until [Server.Shutdown].
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("natsd: %w", err)
	}
	dir, err := openDir(cfg.Root, cfg.Dir, true)
	if err != nil {
		return nil, err
	}
	e := Endpoint{Token: rand.Text(), PID: os.Getpid(), ID: rand.Text(), StartedAt: time.Now().UTC().Truncate(time.Second), Purpose: cfg.Purpose}
	l, err := acquire(ctx, dir, holder{PID: e.PID, ID: e.ID, Since: e.StartedAt, Purpose: cfg.Purpose}, lockPatience)
	if err != nil {
		dir.close()
		return nil, err
	}
	s := &Server{
		cfg: cfg, dir: dir, lock: l, endpoint: e, log: cfg.Logger,
		failed: make(chan struct{}), closing: make(chan struct{}), done: make(chan struct{}),
	}
	if err := s.run(ctx); err != nil {
		s.Shutdown()
		return nil, err
	}
	return s, nil
}

// run starts the server. After an error Shutdown removes what it leaves behind.
func (s *Server) run(ctx context.Context) error {
	if err := s.dir.root.Remove(clientFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return explain("remove", filepath.Join(s.dir.path, clientFile), err)
	}
	if err := s.dir.checkStreams(); err != nil {
		return err
	}
	if err := s.probe(); err != nil {
		return err
	}
	ns, err := server.NewServer(s.options())
	if err != nil {
		return fmt.Errorf("natsd: %w", err)
	}
	s.nats = ns
	lines := newNatsLog(s.log)
	ns.SetLoggerV2(lines, s.log.Enabled(ctx, slog.LevelDebug), false, false)
	ns.Start()
	if !ns.JetStreamEnabled() || !ns.ReadyForConnections(readyTimeout) {
		return fmt.Errorf("natsd: server on %s did not start: %s", s.dir.path, lines.cause())
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("natsd: %w", err)
	}
	s.endpoint.URL = ns.ClientURL()
	if err := writeEndpoint(s.dir, s.endpoint); err != nil {
		return explain("write", filepath.Join(s.dir.path, clientFile), err)
	}
	s.watcher.Go(func() { s.watch(lines.erred) })
	return nil
}

// options returns the configuration of the nats-server: loopback only, one token, and
// streams that survive a power cut.
func (s *Server) options() *server.Options {
	return &server.Options{
		ServerName:    serverName(s.endpoint.ID),
		Host:          "127.0.0.1",
		Port:          server.RANDOM_PORT,
		Authorization: s.endpoint.Token,
		MaxPayload:    8 << 20, // a record may hold many events and commands

		JetStream:              true,
		StoreDir:               s.dir.path, // the server appends "jetstream"
		SyncAlways:             true,       // an ack means that it survives a power cut
		JetStreamMaxStore:      s.cfg.MaxStore,
		JetStreamMaxMemory:     s.cfg.MaxMemory,
		DisableJetStreamBanner: true,

		NoSigs:                true,
		DisableShortFirstPing: true,
	}
}

// Endpoint returns how to connect. Clients in this process go through TCP as well, because
// pull consumers stall over in-process pipes.
func (s *Server) Endpoint() Endpoint { return s.endpoint }

// URL returns the loopback address to connect to, without the token.
func (s *Server) URL() string { return s.endpoint.URL }

// Token returns the token that clients authorise themselves with. It must not be logged.
func (s *Server) Token() string { return s.endpoint.Token }

// Done returns a channel that is closed when the server has stopped and the store is free.
func (s *Server) Done() <-chan struct{} { return s.done }

// Failed returns a channel that is closed when a write to the store failed. From then on the
// server takes no message and does not even refuse it: publishers wait until their time is
// over. So whoever runs the server calls Shutdown then. [Server.Healthy] returns the reason.
func (s *Server) Failed() <-chan struct{} { return s.failed }

// Shutdown stops the server and returns when it has: clients are disconnected,
// streams are closed, client.json is gone and the store is free. Calling it again,
// or at the same time, waits for the same end.
func (s *Server) Shutdown() {
	s.once.Do(s.stop)
	<-s.done
}

// stop is Shutdown, which calls it once. Also a server that did not start is stopped by it.
func (s *Server) stop() {
	close(s.closing)
	defer close(s.done)
	defer s.dir.close()
	defer s.lock.release()
	if err := s.dir.root.Remove(clientFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn("cannot remove the address file", "error", err)
	}
	if s.nats == nil {
		return
	}
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	s.watcher.Wait()
}
