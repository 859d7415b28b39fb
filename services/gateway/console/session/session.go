// Package session makes the sessions of people who are signed in to the console.
//
// A session is a sealed cookie, not an entry of a store: it names an entry of the file of
// tokens, and is opened with a key that all gateways of an address share. It ends after
// 12 hours, and at once when its entry is removed from the file, replaced or expired.
package session

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const (
	// Time is how long a session lasts at most.
	Time = 12 * time.Hour
	// KeyBytes is the length of the key.
	KeyBytes = 32
	// maxCookie bounds a cookie, in bytes.
	maxCookie = 512
)

// Why there is no session, as the page to sign in says it. ErrNone says nothing.
var (
	ErrNone    = errors.New("")
	ErrForeign = errors.New("it is not one of this installation, or the key of the console was replaced")
	ErrOver    = errors.New("a session lasts 12 hours")
	ErrRemoved = errors.New("its token or login was taken out of the operator's file, or replaced there")
	ErrExpired = errors.New("its token has expired")
)

// LoadKey reads the key of sessions. One that is missing is made, so that sessions survive a
// restart; where gateways share an address they share the file as well.
func LoadKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o027 != 0 {
		return nil, fmt.Errorf("%s lets whoever reads it sign in as everybody: it has to be a regular file that only its owner, and perhaps its group, can read: "+
			"chmod 600 %s", path, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != KeyBytes {
		return nil, fmt.Errorf("%s is not a key of %d bytes in hexadecimal, as `openssl rand -hex %d` makes one", path, KeyBytes, KeyBytes)
	}
	return key, nil
}

// makeKey writes a new key. Of two gateways that start at once, one makes it and the other
// reads that one.
func makeKey(path string) ([]byte, error) {
	key := make([]byte, KeyBytes)
	_, _ = rand.Read(key) // it never fails
	f, err := os.CreateTemp(filepath.Dir(path), ".console-key-*")
	if err != nil {
		return nil, fmt.Errorf("the key of the console's sessions is missing and cannot be made: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	// A link fails where there is a file by now, which is the one that counts.
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return LoadKey(path)
}

// Sessions makes cookies and finds out whose they are. It remembers nothing, so a session
// survives a restart and is known to every gateway with the same key.
//
// A cookie names an entry of the file of tokens and when it was made, and is bound to the
// token that was shown: by a hash with the key, of which the token's own hash is not learnt.
// An entry that is gone, has another token or has expired ends the session.
//
// Who came by a login is bound to what the issuer calls them instead.
type Sessions struct {
	key  []byte
	book *tokens.Book
	now  func() time.Time
	// issuer says who told of logins; another issuer's names are those of other people.
	issuer string
}

// MAC returns a hash with the key, of a purpose and a text.
func (s *Sessions) MAC(purpose string, data []byte) string {
	m := hmac.New(sha256.New, s.key)
	_, _ = m.Write([]byte(purpose + "\x00")) // a hash takes everything
	_, _ = m.Write(data)
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// Way is a way to sign in.
type Way string

// The ways to sign in: with a token, and with an account at the issuer.
const (
	ByToken Way = "1"
	ByLogin Way = "2"
)

// New returns Sessions with a key, of the entries of a book. issuer is the address
// of who tells of logins, together with what it knows us by and the claim: another
// one's names are those of other people. It is empty where there is none.
func New(key []byte, book *tokens.Book, issuer string, now func() time.Time) *Sessions {
	return &Sessions{key: key, book: book, issuer: issuer, now: now}
}

// Seal returns a new session of an entry.
func (s *Sessions) Seal(way Way, t *tokens.Token) string {
	body := strings.Join([]string{string(way), t.Name, strconv.FormatInt(s.now().Unix(), 36), s.proof(way, t)}, ".")
	return body + "." + s.MAC("session", []byte(body))
}

// proof returns a hash of the token or the login by which a session begins;
// empty for an entry without it.
func (s *Sessions) proof(way Way, t *tokens.Token) string {
	switch sum := t.Sum(); {
	case way == ByToken && t.SHA256 != "":
		return s.MAC("token", sum[:])
	case way == ByLogin && t.Login != "" && s.issuer != "":
		return s.MAC("account", []byte(s.issuer+"\x00"+t.Login))
	}
	return ""
}

// Open returns the token of a session. The error is one of those above, for a person.
func (s *Sessions) Open(text string) (*tokens.Token, error) {
	i := strings.LastIndexByte(text, '.')
	if i < 0 || len(text) > maxCookie || !hmac.Equal([]byte(text[i+1:]), []byte(s.MAC("session", []byte(text[:i])))) {
		return nil, ErrForeign
	}
	part := strings.Split(text[:i], ".")
	if len(part) != 4 {
		return nil, ErrForeign
	}
	made, err := strconv.ParseInt(part[2], 36, 64)
	if err != nil {
		return nil, ErrForeign
	}
	if age := s.now().Sub(time.Unix(made, 0)); age < -time.Minute || age >= Time {
		return nil, ErrOver
	}
	t, err := s.book.Named(part[1])
	switch {
	case errors.Is(err, tokens.ErrExpired):
		return nil, ErrExpired
	case err != nil:
		return nil, ErrRemoved
	}
	if _, person := t.Holder(); !person { // the entry was a person's
		return nil, ErrRemoved
	}
	if proof := s.proof(Way(part[0]), t); proof == "" || !hmac.Equal([]byte(part[3]), []byte(proof)) {
		return nil, ErrRemoved
	}
	return t, nil
}
