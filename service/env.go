package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/statedir"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/service/announced"
)

// Env is passed by [Main] to the run function of a service.
type Env struct {
	// Name is the service's, such as "analyzer".
	Name string
	// Config has been checked.
	Config *Config
	// Log carries the service's and the replica's name.
	Log *slog.Logger
	// Health is served already; add what readiness depends on.
	Health *Health
	// Bus is connected, and closed by Main.
	Bus *bus.Bus
	// Metrics is nil if nothing is measured.
	Metrics *telemetry.Recorder

	// Hold is that of the workers that Worker makes; nil: no command is held back.
	Hold func(*forge.Command) error
	// Unwell and Elsewhere are asked by those workers as well: why this replica can do no work,
	// beside its disk, and why another one had better take a command; nil: nothing is known.
	Unwell    func() error
	Elsewhere func(*forge.Command) error

	// started is when the process began.
	started time.Time
	// refusedFor is how long refused credentials are tried again at the start.
	refusedFor time.Duration
	// getenv returns a variable of the environment.
	getenv func(string) string
	// announcer makes this replica known to others.
	announcer announced.Announcer
	// redactor is made by the first call of secrets.
	redactOnce sync.Once
	redactor   *redact.Redactor
	// stops undo the steps of open, in reverse order.
	stops []func()
}

// Worker returns a worker with the service's configuration; readiness then depends on
// its consumers. If the outbox cannot be opened it works without one.
func (e *Env) Worker(handlers ...Handler) *Worker {
	outbox, err := OpenOutbox(filepath.Join(e.Config.StateDir, "outbox", e.Name), e.Log)
	if err != nil {
		e.Log.Error("results are not kept until they are journaled", "error", err)
	}
	disk := statedir.New(e.Config.StateDir)
	e.Health.Add("state", disk.Check)
	e.AddHealthCheck(disk.Check)
	for _, h := range handlers {
		e.Health.Add("commands", func(ctx context.Context) error {
			return e.Bus.Commands.Ready(ctx, h.Step, e.Config.Group, e.Config.Replica)
		})
	}
	return &Worker{
		Bus: e.Bus, Replica: e.Config.Replica, Group: e.Config.Group, Log: e.Log, Handlers: handlers,
		Parallel: e.Config.Workers, Permits: NewPermits(e.Config.Workers), Outbox: outbox, Grace: e.Config.DrainTimeout,
		Shared: true, Secrets: e.secrets(), Hold: e.Hold, Metrics: e.Metrics, Alive: &e.Health.Alive, Elsewhere: e.Elsewhere,
		Unwell: func(ctx context.Context, anew bool) error {
			if err := disk.Answer(ctx, anew); err != nil || e.Unwell == nil {
				return err
			}
			return e.Unwell()
		},
	}
}

// SigningKey returns the key by which the service signs, which follows from its
// nkey. Without an nkey it signs nothing: no file would trust its key.
func (e *Env) SigningKey() proof.Source {
	if e.Config.NKey == "" {
		return nil
	}
	of := bus.SigningKey(e.Config.NKey, e.Name)
	return func() (*proof.Key, error) {
		key, err := of()
		if err != nil {
			return nil, fmt.Errorf("--nkey (FORGE_NKEY): %w", err)
		}
		return key, nil
	}
}

// signersFile is the name of the file of trusted keys that auth init puts beside the nkeys.
const signersFile = "allowed_signers"

// Authors returns the keys by which senders are proven: of the file that is
// configured, or of the one beside the nkey. It is nil where there is neither, which
// it logs: then nothing proves who sent a message but the permissions of NATS.
func (e *Env) Authors() (*signed.Keys, error) {
	path := e.Config.Runner.TrustedKeys
	if path == "" && e.Config.NKey != "" {
		beside := filepath.Join(filepath.Dir(e.Config.NKey), signersFile)
		if _, err := os.Stat(beside); !errors.Is(err, fs.ErrNotExist) {
			path = beside
		}
	}
	if path == "" {
		e.Log.Warn("no signature is asked for: nothing proves who sends requests and results but the permissions of NATS; " +
			"pfl-forge auth init makes keys, and --trusted-keys (FORGE_TRUSTED_KEYS) names their file")
		return nil, nil //nolint:nilnil // nothing is proven
	}
	keys, err := signed.OpenKeys(path, e.Log)
	if err != nil {
		return nil, fmt.Errorf("--trusted-keys (FORGE_TRUSTED_KEYS), or %s beside --nkey: %w", signersFile, err)
	}
	return keys, nil
}

// open starts the health endpoint and connects to NATS, retrying until ctx ends.
// After an error, close undoes what was done.
func (e *Env) open(ctx context.Context) error {
	if err := e.measure(ctx); err != nil {
		return err
	}
	if e.Config.Listen != "" {
		_, stop, err := e.Health.serve(ctx, e.Config.Listen, e.Log)
		if err != nil {
			return err
		}
		e.stops = append(e.stops, stop)
	}
	link := &link{env: e}
	e.Health.Add("nats", link.check)
	cfg := bus.Config{
		URL: e.Config.Server, Creds: e.Config.Creds, NKey: e.Config.NKey, TLS: e.Config.TLS, Replicas: e.Config.Replicas, Groups: e.Config.Groups(),
		Name: e.Name + "/" + string(e.Config.Replica), Logger: e.Log, Alive: &e.Health.Alive, Key: e.SigningKey(), Singly: e.Name != string(access.Runner),
	}
	if cfg.NKey != "" { // a role's permissions name its inbox
		cfg.InboxPrefix = access.Inbox(e.Name)
	}
	if e.Config.TokenFile != "" {
		if _, err := e.Config.Token(); err != nil {
			return fmt.Errorf("--token-file (FORGE_TOKEN_FILE): %w", err)
		}
		cfg.ReadToken = e.Config.Token
	}
	var err error
	e.Bus, err = bus.Await(ctx, cfg, bus.Waiting{RefusedFor: e.refusedFor, Report: link.report})
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	if e.Bus != nil && err != nil {
		e.Bus.Close()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", hidePasswords(e.Config.Server), e.named(err))
	}
	e.stops = append(e.stops, e.Bus.Close)
	link.connected(e.Bus)
	return nil
}

// measure begins to record and to export metrics, as the settings say.
func (e *Env) measure(ctx context.Context) error {
	out, err := export.Open(ctx, export.Config{
		Service: e.Name, Replica: string(e.Config.Replica), Version: Version(),
		Scrape: e.Config.Listen != "", Getenv: e.getenv, Log: e.Log,
	})
	if err != nil {
		return err
	}
	e.stops = append(e.stops, func() {
		if err := out.Close(); err != nil {
			e.Log.WarnContext(ctx, "the last metrics are not exported", "error", err)
		}
	})
	e.Metrics = out.Recorder
	for _, p := range e.Config.Served() {
		e.Metrics.Serves(p.ID)
	}
	e.Metrics.Watch(func(ctx context.Context) (failing []string) {
		for _, m := range e.Health.Missing(ctx) {
			failing = append(failing, m.Check)
		}
		return failing
	})
	if out.Metrics != nil {
		e.Health.ServeMetrics(out.Metrics)
	}
	return nil
}

// named returns an error of the connection with the setting that it is about, if only a
// person can mend it.
func (e *Env) named(err error) error {
	switch {
	case errors.Is(err, bus.ErrCredentials), errors.Is(err, bus.ErrNotAllowed):
		return fmt.Errorf("%s: %w", e.Config.credentialSetting(), err)
	case errors.Is(err, bus.ErrOwnCertificate) && e.Config.TLS.Cert != "":
		return fmt.Errorf("%s: %w", tlsPairSettings, err)
	case errors.Is(err, bus.ErrOwnCertificate):
		return fmt.Errorf("%s are missing: %w", tlsPairSettings, err)
	case errors.Is(err, bus.ErrCertificate) && e.Config.TLS.CA != "":
		return fmt.Errorf("%s: %w", authorities, err)
	case errors.Is(err, bus.ErrCertificate):
		return fmt.Errorf("--server (FORGE_SERVER), with authorities from SSL_CERT_FILE and SSL_CERT_DIR, or "+authorities+": %w", err)
	case errors.Is(err, bus.ErrReplicas):
		return fmt.Errorf("--stream-replicas (FORGE_STREAM_REPLICAS): %w", err)
	}
	return err
}

// close disconnects and stops the health endpoint.
func (e *Env) close() {
	for _, stop := range slices.Backward(e.stops) {
		stop()
	}
}
