// Package login keeps the login of a person at an OpenID Connect issuer, whose
// tokens say to a gateway who they are.
//
// It is a file for its owner alone, with the newest token and what the issuer gave to refresh
// it with. A token that is about to expire is replaced before it is used, by one process at a
// time: most issuers take what refreshes a login once, and end the login where it comes twice.
//
//	login.go    Folder: the file, and the token that counts now
//	claims.go   New: what a token says of itself, compared with what was asked for
package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/identity"
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

// Folder is that of a login at one gateway. Each gateway has one of its own.
type Folder struct {
	// Path is where it is. It need not exist.
	Path string
	// Server is the address of the gateway, in the one form by which its login
	// is found again. No other one is sent what is in the folder.
	Server string
}

// Login is a login at an issuer: the person, the issuer, and its tokens.
type Login struct {
	At

	// Server is the address of the gateway that the token is for, as Folder has it.
	Server string `json:"server"`
	// CA is the path of a file with the authorities of the gateway's
	// certificate; empty for the system's.
	CA string `json:"ca"`
	// Token is the newest ID token, and Refresh gets the next one; empty if the issuer gives none.
	Token   string `json:"token"`
	Refresh string `json:"refresh"`
	// Until is when the token expires, by the clock of this machine. The
	// gateway's word counts more, see Folder.Token.
	Until time.Time `json:"until"`
	// Name names the account for people.
	Name string `json:"name"`
}

// Read returns the login. Error: ErrNone. A file that others can read has been read by them, as
// it may be, and is refused, and so is the login of another gateway, such as one that was copied.
func (f Folder) Read() (l Login, err error) {
	path := filepath.Join(f.Path, file)
	in, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return l, ErrNone
	}
	if err != nil {
		return l, err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return l, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || info.Size() > maxFile {
		return l, fmt.Errorf("%s can be read by others, or is no file of a login: remove it, and log in again", path)
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile))
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return l, fmt.Errorf("%s is no file of a login: remove it, and log in again", path)
	}
	if l.Server != f.Server {
		return Login{}, fmt.Errorf("%s is a login at %q, and not at %s: remove it, and log in again", path, l.Server, f.Server)
	}
	return l, nil
}

// Write keeps a login at the gateway of the folder, in place of the one that is
// there. It waits for a process that refreshes that one, and would put it back.
func (f Folder) Write(ctx context.Context, l Login) error {
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return err
	}
	held, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	return f.write(l)
}

// lock keeps other processes from changing the login. Its file stays when the
// login ends: another one would be another lock.
func (f Folder) lock(ctx context.Context) (io.Closer, error) {
	return git.LockFile(ctx, filepath.Join(f.Path, lock))
}

// write is Write for who has the lock.
func (f Folder) write(l Login) error {
	l.Server = f.Server
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(f.Path, ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(next.Name()) }()
	_, err = next.Write(append(text, '\n'))
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), filepath.Join(f.Path, file))
}

// End removes the login, after a process that refreshes it, which would put it
// back. A token that was given out counts until it expires.
func (f Folder) End(ctx context.Context) error {
	if _, err := os.Stat(f.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	held, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	entries, err := os.ReadDir(f.Path)
	for _, e := range entries {
		if e.Name() != lock {
			err = errors.Join(err, os.Remove(filepath.Join(f.Path, e.Name())))
		}
	}
	return err
}

// Token returns a token that counts for a while: the one that is kept, or where
// that is about to expire the next one, which is kept in its place. refused is the
// one that the gateway did not take, so that another one is wanted whatever the
// clock of this machine says; empty for none. An issuer that does not answer leaves
// the present one in use until it expires. Errors: ErrNone, identity.ErrGrant where
// only another login helps, and identity.ErrAway where it may be asked for again.
func (f Folder) Token(ctx context.Context, refused string) (string, error) {
	l, err := f.Read()
	if err != nil || l.counts(refused) {
		return l.Token, err
	}
	held, err := f.lock(ctx)
	if errors.Is(err, git.ErrBusy) {
		return "", fmt.Errorf("the issuer %s %w: another command waits for its answer", l.Issuer, identity.ErrAway)
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = held.Close() }()
	if l, err = f.Read(); err != nil || l.counts(refused) { // another process was first
		return l.Token, err
	}
	// A command that is ended now would take the answer along, and what was
	// sent counts once. The issuer has seconds to answer.
	next, err := l.refresh(context.WithoutCancel(ctx))
	switch {
	case err == nil:
		return next.Token, f.write(next)
	case l.Token != refused && time.Until(l.Until) > 0:
		return l.Token, nil
	case errors.Is(err, identity.ErrGrant):
		return "", fmt.Errorf("the login of %s has ended: pfl-forge login begins a new one (%w)", l.Name, err)
	}
	return "", fmt.Errorf("the login of %s has to be refreshed: %w", l.Name, err)
}

// counts reports whether the token can be used as it is.
func (l *Login) counts(refused string) bool { return l.Token != refused && time.Until(l.Until) > soon }

// refresh returns the login with a new token, of the same person at the same issuer.
func (l *Login) refresh(ctx context.Context) (Login, error) {
	if l.Refresh == "" {
		return Login{}, fmt.Errorf("%w: nothing to refresh it with was given", identity.ErrGrant)
	}
	site, err := identity.NewSite(identity.SiteConfig{Issuer: l.Issuer, Client: l.Client, CA: l.IssuerCA, Now: time.Now})
	if err != nil {
		return Login{}, err
	}
	g, err := site.Refresh(ctx, identity.Grant{Refresh: l.Refresh})
	if err != nil {
		return Login{}, err
	}
	next, err := New(l.At, g, time.Now())
	if err != nil {
		return Login{}, fmt.Errorf("%w: %w", identity.ErrGrant, err)
	}
	if next.Subject != l.Subject {
		return Login{}, fmt.Errorf("%w: it has sent a token of another account", identity.ErrGrant)
	}
	next.CA = l.CA
	return next, nil
}
