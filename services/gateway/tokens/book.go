package tokens

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/filestamp"
	"github.com/pfl-forge/pfl-forge/internal/retry"
)

var (
	// ErrUnknown says that there is no such token.
	ErrUnknown = errors.New("this token is not known")
	// ErrNoLogin says that an account of the issuer is in no entry.
	ErrNoLogin = errors.New("no entry of the operator's file of tokens has this login")
	// ErrNoAccount says that an account of a forge or chat is in no entry.
	ErrNoAccount = errors.New("no person is known for this account")
	// ErrExpired says that a token has ended.
	ErrExpired = errors.New("this token has expired")
)

// lookEvery is how often the file is looked at.
const lookEvery = 100 * time.Millisecond

// Book is a file of tokens, which is read again when it changes; that of Own is in no file. It is
// safe for concurrent use.
type Book struct {
	// path is empty where there is no file.
	path string
	log  *slog.Logger
	now  func() time.Time

	mu     sync.Mutex
	looked time.Time
	file   filestamp.Stamp
	list   []Token
	// notices keeps a mistake that stays from being logged at each look.
	notices retry.Notices
}

// Open reads a file of tokens. A file that cannot be read later on leaves the former tokens
// in force, which it logs.
func Open(path string, log *slog.Logger, now func() time.Time) (*Book, error) {
	b := &Book{path: path, log: log, now: now}
	return b, b.read()
}

// None returns a book without entries, for a gateway without a file: it knows
// no token, login or account.
func None() *Book { return &Book{now: time.Now} }

// OwnEntry is the name of the entry of Own.
const OwnEntry = "own"

// Own returns a book with one entry and no file: a person on their own machine, who has every role
// in their project. No token leads to it: whoever has made sure of the person asks for it by name.
func Own(person string, p forge.ProjectID) (*Book, error) {
	_, sum := Make()
	t := Token{Name: OwnEntry, SHA256: sum, Person: person, Projects: map[string][]Role{string(p): Roles()}}
	for _, m := range t.check() {
		return nil, fmt.Errorf("%s %s", m.field, m.reason)
	}
	return &Book{list: []Token{t}, now: time.Now}, nil
}

// read reads the file.
func (b *Book) read() error {
	file, err := filestamp.Take(b.path)
	if err != nil {
		return err
	}
	list, err := load(b.path)
	if err == nil {
		b.list, b.file = list, file
	}
	return err
}

// current returns the tokens as they are now.
func (b *Book) current() []Token {
	if b.path == "" {
		return b.list
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.looked) >= lookEvery {
		b.looked = now
		file, err := filestamp.Take(b.path)
		if err == nil && !b.file.Unchanged(file) {
			err = b.read()
		}
		if err == nil {
			b.notices.Reset()
		} else if b.notices.Due(now) {
			b.log.Error("cannot read the file of tokens; the former ones stay in force", "error", err)
		}
	}
	return b.list
}

// Find returns the entry of a token. Errors: ErrUnknown, ErrExpired.
func (b *Book) Find(secret string) (*Token, error) { return b.counts(find(b.current(), secret)) }

// Named returns the entry of a name, for whoever has made sure that its token was shown.
// Errors: those of Find.
func (b *Book) Named(name string) (*Token, error) {
	list := b.current()
	i := slices.IndexFunc(list, func(t Token) bool { return t.Name == name })
	if i < 0 {
		return nil, ErrUnknown
	}
	return b.counts(&list[i])
}

// ByLogin returns the entry of a person by what the issuer calls them, for
// whoever has made sure that it is they. Errors: ErrNoLogin, ErrExpired.
func (b *Book) ByLogin(login string) (*Token, error) {
	list := b.current()
	i := slices.IndexFunc(list, func(t Token) bool { return t.Login == login && login != "" })
	if i < 0 {
		return nil, ErrNoLogin
	}
	return b.counts(&list[i])
}

// ByAccount returns the entry of a person by their account at a forge or chat,
// of which at is the name in its own file, for whoever has made sure that it is
// they. Errors: ErrNoAccount, ErrExpired.
func (b *Book) ByAccount(at, id string) (*Token, error) {
	list := b.current()
	i := slices.IndexFunc(list, func(t Token) bool { return id != "" && t.Accounts[at] == id })
	if i < 0 {
		return nil, ErrNoAccount
	}
	return b.counts(&list[i])
}

// CheckAccounts returns an error for each account at a forge or chat that check
// refuses, by the field in the file. One that is written later is not checked:
// an id that no account has lets no one in.
func (b *Book) CheckAccounts(at string, check func(person, id string) error) error {
	var wrong []error
	for _, t := range b.current() {
		if id, has := t.Accounts[at]; has {
			if err := check(t.Person, id); err != nil {
				wrong = append(wrong, fmt.Errorf("tokens.%s.accounts.%s: %w", t.Name, at, err))
			}
		}
	}
	return errors.Join(wrong...)
}

// In returns the entries that have roles in a project, in the order of their names,
// those that have expired as well. Whoever tells of them leaves out their hashes.
func (b *Book) In(p forge.ProjectID) (list []Token) {
	for _, t := range b.current() {
		if len(t.Roles(p)) > 0 {
			list = append(list, t)
		}
	}
	return list
}

// counts returns an entry if its token counts now.
func (b *Book) counts(t *Token) (*Token, error) {
	switch {
	case t == nil:
		return nil, ErrUnknown
	case !t.Expires.IsZero() && !b.now().Before(t.Expires):
		return nil, ErrExpired
	}
	return t, nil
}
