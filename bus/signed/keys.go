package signed

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/pfl-forge/pfl-forge/internal/filestamp"
	"github.com/pfl-forge/pfl-forge/proof"
)

const (
	// Window is how far the time of a signature and that of a message may be apart.
	// The time of a stored message is when the server stored it, so that it may wait
	// as long as it takes for a runner.
	Window = 10 * time.Minute
	// grace is for how long a key that was renewed still counts: for what was signed
	// a moment before.
	grace = time.Minute
	// settling is for how long a message of an unknown key waits for the file of keys
	// to follow.
	settling = time.Minute
	// lookEvery is how often the file is looked at.
	lookEvery = 100 * time.Millisecond
)

// Kind says what is wrong with a message.
type Kind int

// The kinds of errors.
const (
	// Forged messages never become good ones.
	Forged Kind = iota
	// UnknownKey messages do if the file of keys follows.
	UnknownKey
	// Untimely messages do if they are signed anew, as workers sign their results
	// each time they send them.
	Untimely
)

// Error says why a message is not believed.
type Error struct {
	// Kind says whether that may change.
	Kind Kind
	// Reason is for people. It says what to do where something can be done.
	Reason string
}

func (e *Error) Error() string { return e.Reason }

// refuse returns an Error.
func refuse(k Kind, format string, args ...any) *Error {
	return &Error{k, fmt.Sprintf(format, args...)}
}

// Keys maps public keys to accounts: the file of trusted keys. It is safe for concurrent
// use. A nil Keys believes everything, where accounts have no keys.
type Keys struct {
	path string // empty: the keys never change
	log  *slog.Logger

	// Settling is for how long a message of an unknown key waits for the file to
	// follow.
	Settling time.Duration

	mu     sync.Mutex
	looked time.Time
	file   filestamp.Stamp
	byKey  map[string][]proof.Signer

	// verified remembers the outcomes of signatures over more than one message.
	verified outcomes
}

// OpenKeys reads a file of trusted keys, which is read again when it changes. A file
// that cannot be read later on leaves the former keys in force.
func OpenKeys(path string, log *slog.Logger) (*Keys, error) {
	k := &Keys{path: path, log: log, Settling: settling}
	if err := k.read(); err != nil {
		return nil, err
	}
	return k, nil
}

// NewKeys returns keys that never change.
func NewKeys(list proof.Signers) *Keys {
	k := &Keys{Settling: settling}
	k.set(list)
	return k
}

// set replaces the keys.
func (k *Keys) set(list proof.Signers) {
	k.byKey = map[string][]proof.Signer{}
	for _, s := range list {
		public, ok := s.Key.(ssh.CryptoPublicKey)
		if !ok {
			continue
		}
		if raw, ok := public.CryptoPublicKey().(ed25519.PublicKey); ok {
			k.byKey[string(raw)] = append(k.byKey[string(raw)], s)
		}
	}
}

// read reads the file.
func (k *Keys) read() error {
	file, err := filestamp.Take(k.path)
	if err != nil {
		return err
	}
	list, err := proof.ReadSigners(k.path)
	if err != nil {
		return err
	}
	k.file = file
	k.set(list)
	return nil
}

// of returns the lines of a key, from the file as it is now.
func (k *Keys) of(key ed25519.PublicKey) []proof.Signer {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); k.path != "" && now.Sub(k.looked) >= lookEvery {
		k.looked = now
		file, err := filestamp.Take(k.path)
		if err == nil && !k.file.Unchanged(file) {
			err = k.read()
		}
		if err != nil && k.log != nil {
			k.log.Error("cannot read the file of trusted keys; the former ones stay in force", "error", err)
		}
	}
	return k.byKey[string(key)]
}

// Check decides whether a message is its author's: that it is signed, as what it
// came as, at a time near that at which it was taken, by a key of the account that
// is good for it. texts are the values of Header. It returns the proof; the error is
// an *Error.
func (k *Keys) Check(m *Message, texts []string, taken time.Time, from Author) (Proof, error) {
	if k == nil {
		return Proof{}, nil
	}
	switch {
	case len(texts) == 0:
		return Proof{}, refuse(Forged, "it is not signed: nothing proves that it is from %s", from.Account)
	case len(texts) > 1:
		return Proof{}, refuse(Forged, "it has %d signatures; one is allowed", len(texts))
	}
	p, err := Parse(texts[0])
	if err != nil {
		return Proof{}, refuse(Forged, "its signature cannot be read: %v", err)
	}
	if err := p.about(m); err != nil {
		return Proof{}, err
	}
	if err := k.by(&p, taken, from); err != nil {
		return Proof{}, err
	}
	if apart := taken.Sub(p.At).Abs(); apart > Window {
		return Proof{}, refuse(Untimely, "it was signed at %s and came at %s: it was sent again by another, or a clock is wrong",
			p.At.Format(time.RFC3339), taken.UTC().Format(time.RFC3339))
	}
	return p, nil
}

// about compares the proof with the message that it came with.
func (p *Proof) about(m *Message) error {
	switch {
	case p.Subject != m.Subject:
		return refuse(Forged, "it was signed for %.200q and came to %.200q", p.Subject, m.Subject)
	case p.ID != m.ID:
		return refuse(Forged, "it was signed as message %.200q and came as %.200q", p.ID, m.ID)
	case p.ContentType != m.ContentType:
		return refuse(Forged, "it was signed as content of type %.100q and came as %.100q", p.ContentType, m.ContentType)
	case !p.Of(m.Payload):
		return refuse(Forged, "its content is not the one that was signed")
	}
	return nil
}

// by checks the signature, and that the key is the author's at a time.
func (k *Keys) by(p *Proof, at time.Time, from Author) error {
	if !k.verified.holds(p) {
		return refuse(Forged, "its signature does not hold")
	}
	if p.Certificate != "" {
		return k.byLogin(p, at, from)
	}
	return k.listed(p.Key, at, from, "signed it")
}

// listed checks that the file has a key as the author's at a time. did says what the
// key has done, for errors.
func (k *Keys) listed(key ed25519.PublicKey, at time.Time, from Author, did string) error {
	lines := k.of(key)
	if len(lines) == 0 {
		return refuse(UnknownKey, "the key that %s is not among the trusted keys: an account that was removed, or a file of keys that is out of date", did)
	}
	var err error
	for i := range lines {
		s := &lines[i]
		switch {
		case s.Principal != from.Account:
			err = refuse(Forged, "it was signed by %s and came as from %s", s.Principal, from.Account)
		case !slices.Contains(s.Namespaces, from.Namespace):
			err = refuse(Forged, "the key of %s may not sign %s, only %s", s.Principal, from.Namespace, strings.Join(s.Namespaces, ", "))
		case !s.Until.IsZero() && at.After(s.Until.Add(grace)):
			err = refuse(UnknownKey, "the key of %s was replaced on %s", s.Principal, s.Until.Format(time.RFC3339))
		default:
			return nil
		}
	}
	return err
}

// certifier is the account whose key certifies those of logins.
const certifier = "auth"

// byLogin checks that the certificate of a proof says that its key is the author's
// at a time. Only people have such keys.
func (k *Keys) byLogin(p *Proof, at time.Time, from Author) error {
	c, err := proof.ParseCertificate(p.Certificate)
	switch {
	case err != nil:
		return refuse(Forged, "%v", err)
	case !k.verified.certifies(&c), !c.Key.Equal(p.Key):
		return refuse(Forged, "its certificate does not hold for its key")
	case c.Account != from.Account:
		return refuse(Forged, "it was signed by %s and came as from %s", c.Account, from.Account)
	case from.Namespace != proof.NamespaceAsk:
		return refuse(Forged, "the key of a login may sign only %s, not %s", proof.NamespaceAsk, from.Namespace)
	}
	issuer := Author{proof.NamespaceCertify, certifier}
	if err := k.listed(c.Issuer, at, issuer, "certified its key"); err != nil {
		return err
	}
	if at.Before(c.From.Add(-grace)) || at.After(c.Until.Add(grace)) {
		return refuse(Untimely, "the login of %s was good from %s until %s: pfl-forge login begins a new one",
			c.Account, c.From.Format(time.RFC3339), c.Until.Format(time.RFC3339))
	}
	return nil
}

// Confirm says who signed a proof that a journal keeps, without the message: the
// account of the key. The signature has to hold, for one of the namespaces of what
// people, systems, gateways and workers send, by a key that was in use then. Error: *Error.
func (k *Keys) Confirm(p *Proof) (account string, err error) {
	if p.Certificate != "" {
		c, err := proof.ParseCertificate(p.Certificate)
		if err == nil {
			err = k.by(p, p.At, Author{proof.NamespaceAsk, c.Account})
		}
		return c.Account, err
	}
	err = refuse(UnknownKey, "the key that signed it is not among the trusted keys")
	for _, s := range k.of(p.Key) {
		for _, n := range []string{proof.NamespaceAsk, proof.NamespaceSubmit, proof.NamespaceVia, proof.NamespaceResult} {
			if !slices.Contains(s.Namespaces, n) {
				continue
			}
			if err = k.by(p, p.At, Author{n, s.Principal}); err == nil {
				return s.Principal, nil
			}
		}
	}
	if !p.Holds() {
		err = refuse(Forged, "its signature does not hold")
	}
	return "", err
}

// IsError returns the *Error in an error, nil if there is none.
func IsError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}
