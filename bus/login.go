package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/callout"
	"github.com/pfl-forge/pfl-forge/proof"
)

// ErrNoLogin is returned where there is no login.
var ErrNoLogin = errors.New("there is no login: pfl-forge login begins one")

// Login is a folder, for its owner alone, with the key of a login and the
// certificate that says whose it is, for some hours.
type Login string

// The files of a Login.
const (
	loginKey         = "nkey"
	loginCertificate = "certificate"
)

// Certificate returns the certificate of the login. Error: ErrNoLogin. One that has
// ended is an error, too.
func (l Login) Certificate() (proof.Certificate, error) {
	text, err := os.ReadFile(filepath.Join(string(l), loginCertificate))
	if errors.Is(err, os.ErrNotExist) {
		return proof.Certificate{}, ErrNoLogin
	}
	if err != nil {
		return proof.Certificate{}, err
	}
	c, err := proof.ParseCertificate(strings.TrimSpace(string(text)))
	if err == nil && time.Now().After(c.Until) {
		err = fmt.Errorf("the login of %s ended on %s: pfl-forge login begins a new one", c.Account, c.Until.Format(time.RFC3339))
	}
	return c, err
}

// Key returns the key by which what the person sends is signed, with its
// certificate.
func (l Login) Key() (*proof.Key, error) {
	c, err := l.Certificate()
	if err != nil {
		return nil, err
	}
	key, err := l.uncertified()
	if err != nil {
		return nil, err
	}
	return key.Certified(&c), nil
}

// uncertified returns the key without a certificate.
func (l Login) uncertified() (*proof.Key, error) {
	return SigningKey(filepath.Join(string(l), loginKey), proof.LoginRole)()
}

// token returns the text of the certificate, which is the token of each connection.
func (l Login) token() (string, error) {
	c, err := l.Certificate()
	return c.String(), err
}

// Use has a connection made, and what is sent over it signed, by the login. It
// returns the name of the person.
func (l Login) Use(cfg *Config) (person string, err error) {
	c, err := l.Certificate()
	if err != nil {
		return "", err
	}
	cfg.NKey, cfg.ReadToken, cfg.Key = filepath.Join(string(l), loginKey), l.token, l.Key
	cfg.InboxPrefix = access.LoginInbox(c.Account)
	return c.Account, nil
}

// Begin makes a key in the folder, asks for a token that is good for this key, and
// has the key certified by the auth service of the server. A former login is
// replaced when the new one is there.
func (l Login) Begin(ctx context.Context, cfg Config, token func(key string) (string, error)) (proof.Certificate, error) {
	if err := os.MkdirAll(filepath.Dir(string(l)), 0o700); err != nil {
		return proof.Certificate{}, err
	}
	made, err := os.MkdirTemp(filepath.Dir(string(l)), ".new-*") // with mode 0700
	if err != nil {
		return proof.Certificate{}, err
	}
	defer func() { _ = os.RemoveAll(made) }()
	next := Login(made)
	public, seed, err := access.NewKey()
	if err != nil {
		return proof.Certificate{}, err
	}
	defer clear(seed)
	if err := os.WriteFile(filepath.Join(made, loginKey), seed, 0o600); err != nil {
		return proof.Certificate{}, err
	}
	c, err := next.certify(ctx, cfg, public, token)
	if err != nil {
		return c, err
	}
	if err := os.WriteFile(filepath.Join(made, loginCertificate), []byte(c.String()+"\n"), 0o600); err != nil {
		return c, err
	}
	if err := os.RemoveAll(string(l)); err != nil {
		return c, err
	}
	return c, os.Rename(made, string(l))
}

// certify has the key of the folder certified.
func (l Login) certify(ctx context.Context, cfg Config, public string, token func(key string) (string, error)) (proof.Certificate, error) {
	text, err := token(public)
	if err != nil {
		return proof.Certificate{}, err
	}
	key, err := l.uncertified()
	if err != nil {
		return proof.Certificate{}, err
	}
	cfg.NKey, cfg.ReadToken = filepath.Join(string(l), loginKey), func() (string, error) { return text, nil }
	cfg.InboxPrefix = access.LoginInbox(public)
	c, err := dial(ctx, cfg)
	if errors.Is(err, nats.ErrAuthorization) {
		return proof.Certificate{}, fmt.Errorf("the auth service does not take the token, and its log says why: %w", err)
	}
	if err != nil {
		return proof.Certificate{}, err
	}
	defer c.NC.Close()
	return callout.Certify(ctx, c.NC, text, public, key)
}

// End removes the login. What was signed stays signed.
func (l Login) End() error { return os.RemoveAll(string(l)) }

// ServeLogins lets in people and services by their tokens, on a connection of the
// account auth, until ctx ends. As many replicas as wanted share the work.
func ServeLogins(ctx context.Context, cfg Config, how callout.Config) error {
	cfg.InboxPrefix = access.Inbox(string(access.Auth))
	c, err := dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.NC.Close()
	return callout.Serve(ctx, c.NC, how)
}
