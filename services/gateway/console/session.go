package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const (
	// cookieName has the prefix by which a browser takes the cookie of this very origin only:
	// not that of a neighbour under the same domain.
	cookieName = "__Host-pfl-forge-session"
	// sessionTime is how long a session lasts at most.
	sessionTime = 12 * time.Hour
	// keyBytes is the length of the key.
	keyBytes = 32
	// maxCookie bounds a cookie, in bytes.
	maxCookie = 512
)

// Why there is no session, as the page to sign in says it.
var (
	errNoSession = errors.New("")
	errForeign   = errors.New("it is not one of this installation, or the key of the console was replaced")
	errOver      = errors.New("a session lasts 12 hours")
	errRemoved   = errors.New("its token was taken out of the operator's file, or replaced there")
	errExpired   = errors.New("its token has expired")
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
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("%s is not a key of %d bytes in hexadecimal, as `openssl rand -hex %d` makes one", path, keyBytes, keyBytes)
	}
	return key, nil
}

// makeKey writes a new key. Of two gateways that start at once, one makes it and the other
// reads that one.
func makeKey(path string) ([]byte, error) {
	key := make([]byte, keyBytes)
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

// sessions makes cookies and finds out whose they are. It remembers nothing, so a session
// survives a restart and is known to every gateway with the same key.
//
// A cookie names an entry of the file of tokens and when it was made, and is bound to the
// token that was shown: by a hash with the key, of which the token's own hash is not learnt.
// An entry that is gone, has another token or has expired ends the session.
type sessions struct {
	key  []byte
	book *tokens.Book
	now  func() time.Time
}

// mac returns a hash with the key, of a purpose and a text.
func (s *sessions) mac(purpose string, data []byte) string {
	m := hmac.New(sha256.New, s.key)
	_, _ = m.Write([]byte(purpose + "\x00")) // a hash takes everything
	_, _ = m.Write(data)
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// seal returns a new session of a token.
func (s *sessions) seal(t *tokens.Token) string {
	sum := t.Sum()
	body := strings.Join([]string{"1", t.Name, strconv.FormatInt(s.now().Unix(), 36), s.mac("token", sum[:])}, ".")
	return body + "." + s.mac("session", []byte(body))
}

// open returns the token of a session. The error is one of those above, for a person.
func (s *sessions) open(text string) (*tokens.Token, error) {
	i := strings.LastIndexByte(text, '.')
	if i < 0 || len(text) > maxCookie || !hmac.Equal([]byte(text[i+1:]), []byte(s.mac("session", []byte(text[:i])))) {
		return nil, errForeign
	}
	part := strings.Split(text[:i], ".")
	if len(part) != 4 || part[0] != "1" {
		return nil, errForeign
	}
	made, err := strconv.ParseInt(part[2], 36, 64)
	if err != nil {
		return nil, errForeign
	}
	if age := s.now().Sub(time.Unix(made, 0)); age < -time.Minute || age >= sessionTime {
		return nil, errOver
	}
	t, err := s.book.Named(part[1])
	switch {
	case errors.Is(err, tokens.ErrExpired):
		return nil, errExpired
	case err != nil:
		return nil, errRemoved
	}
	if _, person := t.Holder(); !person { // the entry was a person's
		return nil, errRemoved
	}
	if sum := t.Sum(); !hmac.Equal([]byte(part[3]), []byte(s.mac("token", sum[:]))) {
		return nil, errRemoved
	}
	return t, nil
}

// session returns the token of the session that a request has. Without one the error is
// errNoSession.
func (c *Console) session(r *http.Request) (*tokens.Token, error) {
	list := r.CookiesNamed(c.cookie())
	if len(list) == 0 {
		return nil, errNoSession
	}
	if len(list) > 1 { // only something between browser and gateway adds one
		return nil, errForeign
	}
	return c.sessions.open(list[0].Value)
}

// setSession gives a browser a session; an empty one takes it away. Browsers send it to this origin
// only, never to scripts, and not with the posts of other sites.
func (c *Console) setSession(w http.ResponseWriter, value string) {
	made := &http.Cookie{ //nolint:gosec // Secure, except where the person's own machine serves them by HTTP
		Name: c.cookie(), Value: value, Path: "/", Secure: c.cfg.Own == nil, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int(sessionTime.Seconds()),
	}
	if value == "" {
		made.MaxAge = -1
	}
	http.SetCookie(w, made)
}
