// Package connect turns the flags that say which organisation a command is
// about into a connection: to its NATS server, by a token, a key, credentials,
// a context of the nats command line or a login, or to its gateway.
//
// Package target opens the connections of commands with it; login and the
// commands for administrators call it themselves. Mistakes in flags are errors
// that begin with the flag, and no error repeats a secret.
package connect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/trust"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// NATS returns how to reach the organisation's NATS. A flag overrides the context; without
// any credentials the login at the server counts, if there is one. It makes no connection.
func NATS(a *kit.App) (bus.Config, error) {
	cfg := bus.Config{URL: a.Server, Creds: a.Creds}
	if a.Context != "" {
		var err error
		if cfg, err = natsContext(a, a.Context); err != nil {
			return cfg, err
		}
	}
	if a.Creds+a.TokenFile+a.NKey != "" { // one of them, which takes the place of the context's
		cfg.Token, cfg.Creds, cfg.NKey = "", a.Creds, a.NKey
	}
	if a.TokenFile != "" {
		token, err := os.ReadFile(a.TokenFile)
		if err != nil {
			return cfg, fmt.Errorf("--token-file: %w", err)
		}
		if cfg.Token = strings.TrimSpace(string(token)); cfg.Token == "" {
			return cfg, fmt.Errorf("--token-file: %s is empty", a.TokenFile)
		}
	}
	if a.NKey != "" && userInfo.MatchString(cfg.URL) {
		return cfg, kit.Usage(errors.New("--nkey: the server's URL names a user or a token, which would count instead: leave it out"))
	}
	if err := encryption(a, &cfg); err != nil {
		return cfg, err
	}
	if cfg.Token+cfg.Creds+cfg.NKey == "" && !userInfo.MatchString(cfg.URL) && cfg.InboxPrefix == "" && trust.StateHome(a.Getenv) != "" {
		if in, err := loggedIn(a, &cfg); in || err != nil {
			return cfg, err
		}
	}
	return cfg, account(a, &cfg)
}

// loggedIn has the connection made by a login, if there is one at the server. It reports whether
// there is. The person of the login is then who asks, and a --person of another name is a mistake:
// the server would not let the login speak for them.
func loggedIn(a *kit.App, cfg *bus.Config) (bool, error) {
	folder, err := loginFolder(a, cfg.URL)
	if err != nil {
		return false, err
	}
	person, err := bus.Login(folder).Use(cfg)
	switch {
	case errors.Is(err, bus.ErrNoLogin):
		return false, nil
	case err != nil:
		return false, err
	case a.Person != "" && a.Person != person:
		return false, kit.Usage(fmt.Errorf("--person: %s is logged in at this server, and not %s", person, a.Person))
	}
	a.Person = person
	return true, nil
}

// loginFolder returns the folder of the login at an address, whose name is a hash of the address
// as it was typed. There is none without a folder of the user: what is relative to the folder at
// hand would be another login in each, and in a repository for all to see.
func loginFolder(a *kit.App, address string) (string, error) {
	state := trust.StateHome(a.Getenv)
	if state == "" {
		return "", errors.New("a login is kept in your home directory, and there is none: set HOME, or XDG_STATE_HOME, to an absolute path")
	}
	sum := sha256.Sum256([]byte(address))
	return filepath.Join(state, "pfl-forge", "logins", hex.EncodeToString(sum[:8])), nil
}

// LoginAt returns how to reach the server that the flags name, without credentials, and the login
// there, which need not exist yet.
func LoginAt(a *kit.App) (bus.Config, bus.Login, error) {
	cfg := bus.Config{URL: a.Server}
	if a.Context != "" {
		known, err := natsContext(a, a.Context)
		if err != nil {
			return cfg, "", err
		}
		cfg.URL, cfg.TLS = known.URL, known.TLS
	}
	folder, err := loginFolder(a, cfg.URL)
	if err != nil {
		return cfg, "", err
	}
	return cfg, bus.Login(folder), encryption(a, &cfg)
}

// encryption fills in the files of an encrypted connection, and checks them together with the
// nkey: they are read here once, so that an error names the flag and comes before the first try to
// connect.
func encryption(a *kit.App, cfg *bus.Config) error {
	if a.TLSCA != "" {
		cfg.TLS.CA = a.TLSCA
	}
	if a.TLSCert != "" || a.TLSKey != "" {
		cfg.TLS.Cert, cfg.TLS.Key = a.TLSCert, a.TLSKey
	}
	if (cfg.TLS.Cert == "") != (cfg.TLS.Key == "") {
		return kit.Usage(errors.New("--tls-cert and --tls-key: give both or none"))
	}
	if err := (bus.TLS{CA: cfg.TLS.CA}).Check(); err != nil {
		return fmt.Errorf("--tls-ca: %w", err)
	}
	if err := (bus.TLS{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key}).Check(); err != nil {
		return fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	if cfg.NKey == "" {
		return nil
	}
	if _, err := bus.ReadSeed(cfg.NKey); err != nil {
		return fmt.Errorf("--nkey: %w", err)
	}
	return nil
}

// account notes the name of the account that is used, and with it the inbox that its permissions
// name: a server refuses to let an account listen elsewhere. The inbox of a context names the
// account, too; with a key and without a name it is the operator's.
func account(a *kit.App, cfg *bus.Config) error {
	named, isNamed := strings.CutPrefix(cfg.InboxPrefix, access.Inbox("")) // by the context
	switch {
	case a.Person == "" && isNamed:
		a.Person = named
	case a.Person == "" && a.NKey != "":
		a.Person = string(access.Operator)
	}
	if a.Person == "" {
		return nil
	}
	if _, err := access.NewAccount(access.Operator, a.Person); err != nil {
		return kit.Usage(fmt.Errorf("--person: %w", err))
	}
	if cfg.InboxPrefix != "" && cfg.InboxPrefix != access.Inbox(a.Person) {
		return kit.Usage(fmt.Errorf("--person: %s is answered in the inbox %s only, and the context has inbox_prefix %s: leave that out there",
			a.Person, access.Inbox(a.Person), cfg.InboxPrefix))
	}
	cfg.InboxPrefix = access.Inbox(a.Person)
	return nil
}

// natsContext reads a context where the nats command line keeps them:
// $XDG_CONFIG_HOME/nats/context/<name>.json. A name that is a path is refused. A context with a
// user and a password is refused, too: no server of ours has such accounts.
func natsContext(a *kit.App, name string) (bus.Config, error) {
	if name != filepath.Base(name) || name == ".." || name == "." {
		return bus.Config{}, kit.Usage(fmt.Errorf("--context: %q is not a valid name of a NATS context", name))
	}
	folder := kit.NATSConfig(a.Getenv)
	if folder == "" {
		return bus.Config{}, errors.New("--context: contexts are in your home directory, and there is none: set HOME, or XDG_CONFIG_HOME, to an absolute path")
	}
	file := filepath.Join(folder, "context", name+".json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return bus.Config{}, fmt.Errorf("--context: there is no NATS context %s (%s)", name, file)
	}
	if err != nil {
		return bus.Config{}, fmt.Errorf("--context: %w", err)
	}
	var c struct {
		URL      string `json:"url"`
		Token    string `json:"token"`
		User     string `json:"user"`
		Password string `json:"password"`
		Creds    string `json:"creds"`
		NKey     string `json:"nkey"`
		CA       string `json:"ca"`
		Cert     string `json:"cert"`
		Key      string `json:"key"`
		Inbox    string `json:"inbox_prefix"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return bus.Config{}, fmt.Errorf("--context: %s: %w", file, err)
	}
	if c.User != "" || c.Password != "" {
		return bus.Config{}, fmt.Errorf("--context: %s has a user and a password; use a token, credentials or an nkey", file)
	}
	if c.URL == "" {
		return bus.Config{}, fmt.Errorf("--context: %s has no url", file)
	}
	return bus.Config{
		URL: c.URL, Token: c.Token, Creds: c.Creds, NKey: c.NKey, InboxPrefix: c.Inbox, TLS: bus.TLS{CA: c.CA, Cert: c.Cert, Key: c.Key},
	}, nil
}

// userInfo matches user and password in a URL.
var userInfo = pattern.New(`://[^/@,]*@`)

// WithoutSecrets returns the URLs of servers without users and passwords.
func WithoutSecrets(urls string) string { return userInfo.ReplaceAllString(urls, "://") }

// Timeout bounds how long a command waits for an organisation's server: a person waits with it,
// and a service would try for longer.
const Timeout = 5 * time.Second

// Administrator connects to the organisation's server that --server or --context names, about no
// project, and whether or not a runner is up. The caller closes the bus.
func Administrator(ctx context.Context, a *kit.App) (*bus.Bus, error) {
	cfg, err := NATS(a)
	if err != nil {
		return nil, err
	}
	if cfg.NKey != "" && (a.Person == string(access.Operator) || a.Person == a.Getenv("FORGE_PERSON")) { // no account was named for this
		cfg.InboxPrefix, cfg.Singly = access.Inbox(string(access.Backup)), true
	}
	cfg.Name, cfg.Logger = "pfl-forge/administrator", a.Log()
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", WithoutSecrets(cfg.URL), err)
	}
	return b, nil
}
