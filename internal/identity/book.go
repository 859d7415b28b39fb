package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/access"
)

// Book says whose account a token is for, by the file as it is now. It is safe for
// concurrent use.
type Book struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	text    string
	rules   *Rules
	issuers map[string]*issuer
}

// Known is a person or a service with a token that counts.
type Known struct {
	// Account is theirs.
	Account access.Account
	// Issuer is the address of who says so.
	Issuer string
	// Session is for how long a login of theirs is good.
	Session time.Duration
	// Until is when the token expires.
	Until time.Time
}

// Open reads a file of rules, which is read again when it changes. A file that
// cannot be read later on leaves the former rules in force.
func Open(path string, log *slog.Logger, now func() time.Time) (*Book, error) {
	b := &Book{path: path, log: log, now: now}
	return b, b.read()
}

// read reads the file, and does nothing where it is as before.
func (b *Book) read() error {
	text, err := os.ReadFile(b.path)
	if err != nil || string(text) == b.text && b.rules != nil {
		return err
	}
	rules, err := Parse(filepath.Base(b.path), text)
	if err != nil {
		return err
	}
	issuers := map[string]*issuer{}
	for i := range rules.Issuers {
		rule := rules.Issuers[i]
		if issuers[rule.URL], err = newIssuer(rule, b.now); err != nil {
			return fmt.Errorf("%s: issuers[%d]: %w", filepath.Base(b.path), i, err)
		}
	}
	b.text, b.rules, b.issuers = string(text), rules, issuers
	return nil
}

// current returns the rules as they are now.
func (b *Book) current() (*Rules, map[string]*issuer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.read(); err != nil {
		b.log.Error("cannot read the file of identities; what it said before stays in force", "error", err)
	}
	return b.rules, b.issuers
}

// Verify returns whose a token is, or why it counts for no account. key is the
// public key that the sender has proven to hold; empty for none.
func (b *Book) Verify(ctx context.Context, token, key string) (Known, error) {
	rules, issuers := b.current()
	url, err := issuerOf(token)
	if err != nil {
		return Known{}, err
	}
	from := issuers[url]
	if from == nil {
		return Known{}, fmt.Errorf("no token of the issuer %.200q is taken", url)
	}
	claims, until, err := from.claims(ctx, token, key)
	if err != nil {
		return Known{}, err
	}
	account, err := rules.account(&from.rule, claims)
	if err != nil {
		return Known{}, err
	}
	session, err := rules.session()
	return Known{Account: account, Issuer: url, Session: session, Until: until}, err
}

// Person returns the account of a person who has logged in at an issuer before, as
// it is now.
func (b *Book) Person(issuer, name string) (access.Account, error) {
	rules, _ := b.current()
	return rules.person(issuer, name)
}

// issuerOf returns the issuer that a token claims to be of. Nothing is believed yet:
// it only says by whose keys the token is verified, and an issuer that the file does
// not name is never asked.
func issuerOf(token string) (string, error) {
	if len(token) > maxToken || !compact.MatchString(token) {
		return "", fmt.Errorf("this is no token of at most %d bytes in the compact form of a signed JWT", maxToken)
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return "", errors.New("the claims of the token cannot be read")
	}
	return claims.Issuer, nil
}
