package auth

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/callout"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auth/secrets"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/identity"
)

const serveHelp = `Let in people who log in at an OpenID Connect issuer, and services with a token of their Kubernetes
cluster. The nats-server asks about each connection that is made by none of the keys in its auth.conf,
which auth init --logins has prepared for that.

--identities names the file that says which issuers count, and who is whose account. It and auth.conf
are read again when they change. Run two of them, on two machines, so that one may fail. While none runs,
open connections stay until they end, and accounts with keys are let in as before.`

const serveExample = `  pfl-forge auth serve --server nats://nats.example.com --nkey /etc/pfl-forge/nats/auth.nk \
    --conf /etc/pfl-forge/nats/auth.conf --identities /etc/pfl-forge/identities.yaml`

// serveOptions are the flags of auth serve.
type serveOptions struct {
	identities, conf string
	lifetime         time.Duration
}

// serveCommand returns the command auth serve. Of the commands here it is the one that runs
// as a service: it logs JSON lines to standard error, and a signal ends it with exit code 0.
func serveCommand(a *kit.App) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "let in people and services by their tokens",
		Long:    serveHelp,
		Example: serveExample,
		Args:    kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(a); err != nil {
				return kit.Usage(err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serve(ctx, a, &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.identities, "identities", "", "`file` that says whose tokens count, and for which account")
	flags.StringVar(&o.conf, "conf", "", "`file` with the permissions that auth init has written; default: auth.conf beside --nkey")
	flags.DurationVar(&o.lifetime, "lifetime", callout.DefaultLifetime, "how long a connection lasts before it has to be admitted again")
	_ = cmd.RegisterFlagCompletionFunc("lifetime", cobra.NoFileCompletions)
	return cmd
}

// check refuses flags that are missing or malformed, and fills in what is left out.
func (o *serveOptions) check(a *kit.App) error {
	switch {
	case a.Server == "":
		return kit.Missing("--server, the URL of the nats-server")
	case a.NKey == "":
		return kit.Missing("--nkey, the file with the seed of the account auth")
	case o.identities == "":
		return kit.Missing("--identities, the file that says whose tokens count")
	case o.lifetime < time.Minute || o.lifetime > time.Hour:
		return fmt.Errorf("--lifetime: %s is not between 1m and 1h", o.lifetime)
	}
	if o.conf == "" {
		o.conf = filepath.Join(filepath.Dir(a.NKey), secrets.Conf)
	}
	return nil
}

// accounts returns the accounts of the file as it is now. It is called for each
// decision, so that a person who lost an account is not let in again by a login.
func (o *serveOptions) accounts() ([]access.Account, error) {
	text, err := os.ReadFile(o.conf)
	if err != nil {
		return nil, fmt.Errorf("--conf: %w", err)
	}
	users, err := access.ParseConf(string(text))
	if err != nil {
		return nil, fmt.Errorf("--conf: %s: %w", o.conf, err)
	}
	return access.Accounts(users), nil
}

// serve lets in people and services until ctx ends.
//
// Both files are read once before it connects, so that a mistake ends it at the
// start and not at the first login. The seed is cleared from memory at the end.
func serve(ctx context.Context, a *kit.App, o *serveOptions) error {
	level := slog.LevelInfo
	if a.Verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(a.Err, &slog.HandlerOptions{Level: level}))
	seed, err := bus.ReadSeed(a.NKey)
	if err != nil {
		return fmt.Errorf("--nkey: %w", err)
	}
	defer clear(seed)
	if _, err := o.accounts(); err != nil {
		return err
	}
	book, err := identity.Open(o.identities, log, time.Now)
	if err != nil {
		return fmt.Errorf("--identities: %w", err)
	}
	cfg := bus.Config{
		URL: a.Server, NKey: a.NKey, TLS: bus.TLS{CA: a.TLSCA, Cert: a.TLSCert, Key: a.TLSKey}, Name: "auth", Logger: log,
	}
	err = bus.ServeLogins(ctx, cfg, callout.Config{
		Seed: seed, Book: book, Accounts: o.accounts, Lifetime: o.lifetime, Now: time.Now, Log: log,
		Ready: func() { log.InfoContext(ctx, "answering the server") },
	})
	if ctx.Err() != nil {
		return nil // it was to end
	}
	return err
}
