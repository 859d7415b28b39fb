// Package login keeps the login of a person at an OpenID Connect issuer, whose tokens say to a gateway who they are.
//
// It is a file for its owner alone, with the newest token and what the issuer gave to refresh it with. A token that is about to expire is
// replaced before it is used, by one process at a time: most issuers take what refreshes a login once, and end the login where it comes twice.
package login

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

const (
	// soon is for how long a token has to count still to be used as it is.
	soon = time.Minute
	// maxFile bounds the file, in bytes.
	maxFile = 128 << 10
	// file and lock are the names in the folder.
	file, lock = "login.json", "lock"
)

// ErrNone says that there is no login.
var ErrNone = errors.New("there is no login: pfl-forge login begins one")

// Folder is that of a login. Each gateway has one of its own.
type Folder string

// Login is a login at an issuer: the person, the issuer, and its tokens.
type Login struct {
	// Issuer and Client are the issuer, and the id that it knows the command line by; both are empty for a token that was given as it is.
	Issuer string `json:"issuer"`
	Client string `json:"client_id"`
	// Token is the newest ID token, and Refresh gets the next one; empty if the issuer gives none.
	Token   string `json:"token"`
	Refresh string `json:"refresh"`
	// Until is when the token expires, by the clock of this machine.
	Until time.Time `json:"until"`
	// Name names the account for people.
	Name string `json:"name"`
}

// claims are those of a token that are of use here. Its signature is not looked at: the gateway does that.
type claims struct {
	Issuer   string  `json:"iss"`
	Subject  string  `json:"sub"`
	Username string  `json:"preferred_username"`
	Email    string  `json:"email"`
	Issued   float64 `json:"iat"`
	Expires  float64 `json:"exp"`
}

// New returns the login of a grant, as of now. The time for which its token counts begins now: the clocks of the issuer and of this machine may
// be apart.
func New(client string, g identity.Grant, now time.Time) (Login, error) {
	if !identity.IsToken(g.Token) {
		return Login{}, errors.New("what the issuer gave is no token in the compact form of a signed JWT")
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(g.Token, ".")[1])
	var c claims
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return Login{}, errors.New("the claims of the token cannot be read")
	}
	lasts := time.Duration(min(c.Expires-c.Issued, (24*time.Hour).Seconds())) * time.Second
	l := Login{Issuer: c.Issuer, Client: client, Token: g.Token, Refresh: g.Refresh, Until: now.Add(lasts).Round(0)}
	for _, name := range []string{c.Username, c.Email, c.Subject} {
		if l.Name = term.Short(name, 100); l.Name != "" {
			return l, nil
		}
	}
	return Login{}, errors.New("the token says of no person that it is theirs")
}

// Read returns the login. Error: ErrNone. A file that others can read has been read by them, as it may be, and is refused.
func (f Folder) Read() (l Login, err error) {
	path := filepath.Join(string(f), file)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, ErrNone
	}
	if err != nil {
		return l, err
	}
	if info.Mode().Perm()&0o077 != 0 || info.Size() > maxFile {
		return l, fmt.Errorf("%s can be read by others, or is no file of a login: remove it, and log in again", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return l, fmt.Errorf("%s is no file of a login: remove it, and log in again", path)
	}
	return l, nil
}

// Write keeps a login in place of the one that is there. It waits for a process that refreshes that one, and would put it back.
func (f Folder) Write(ctx context.Context, l Login) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	held, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	return f.write(l)
}

// lock keeps other processes from changing the login. Its file stays when the login ends: another one would be another lock.
func (f Folder) lock(ctx context.Context) (io.Closer, error) {
	return git.LockFile(ctx, filepath.Join(string(f), lock))
}

// write is Write for who has the lock.
func (f Folder) write(l Login) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(string(f), ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(next.Name()) }()
	_, err = next.Write(append(text, '\n'))
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), filepath.Join(string(f), file))
}

// End removes the login, after a process that refreshes it, which would put it back. A token that was given out counts until it expires.
func (f Folder) End(ctx context.Context) error {
	if _, err := os.Stat(string(f)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	held, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	entries, err := os.ReadDir(string(f))
	for _, e := range entries {
		if e.Name() != lock {
			err = errors.Join(err, os.Remove(filepath.Join(string(f), e.Name())))
		}
	}
	return err
}

// Token returns a token that counts for a while: the one that is kept, or where that is about to expire the next one, which is kept in its place.
// An issuer that does not answer leaves the present one in use until it expires. Error: ErrNone.
func (f Folder) Token(ctx context.Context) (string, error) {
	l, err := f.Read()
	if err != nil || time.Until(l.Until) > soon {
		return l.Token, err
	}
	held, err := f.lock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = held.Close() }()
	if l, err = f.Read(); err != nil || time.Until(l.Until) > soon { // another process was first
		return l.Token, err
	}
	next, err := l.refresh(ctx)
	if err == nil {
		return next.Token, f.write(next)
	}
	if time.Until(l.Until) > 0 {
		return l.Token, nil
	}
	if errors.Is(err, identity.ErrGrant) {
		return "", fmt.Errorf("the login of %s has ended: pfl-forge login begins a new one (%w)", l.Name, err)
	}
	return "", fmt.Errorf("the login of %s has to be refreshed: %w", l.Name, err)
}

// refresh returns the login with a new token.
func (l *Login) refresh(ctx context.Context) (Login, error) {
	if l.Refresh == "" {
		return Login{}, fmt.Errorf("%w: nothing to refresh it with was given", identity.ErrGrant)
	}
	site, err := identity.NewSite(identity.SiteConfig{Issuer: l.Issuer, Client: l.Client, Now: time.Now})
	if err != nil {
		return Login{}, err
	}
	g, err := site.Refresh(ctx, identity.Grant{Refresh: l.Refresh})
	if err != nil {
		return Login{}, err
	}
	return New(l.Client, g, time.Now())
}
