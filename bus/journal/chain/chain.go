package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// The domains of hashes. A hash of one kind is none of another kind, nor of anything else that
// is hashed elsewhere.
const (
	domainStart   = "pfl-forge journal start v1"
	domainMessage = "pfl-forge journal message v1"
)

// Hash is the hash of a message of a journal.
type Hash [sha256.Size]byte

// Start returns the hash that the first record of a journal carries in the place of the
// one of a message before it. It differs from journal to journal, so that the beginning
// of one is not that of another.
func Start(subject string) Hash { return digest(domainStart, subject, nil) }

// Of returns the hash of a message of a journal, whether it is a record or not. A record's
// payload holds the hash of the message before it, so that its hash covers all messages up to it.
func Of(subject string, payload []byte) Hash { return digest(domainMessage, subject, payload) }

// digest hashes its arguments, each after its length, so that no two lists of arguments are
// the same bytes.
func digest(domain, subject string, payload []byte) (sum Hash) {
	h := sha256.New()
	head := make([]byte, 0, 24+len(domain)+len(subject))
	head = append(binary.BigEndian.AppendUint64(head, uint64(len(domain))), domain...)
	head = append(binary.BigEndian.AppendUint64(head, uint64(len(subject))), subject...)
	h.Write(binary.BigEndian.AppendUint64(head, uint64(len(payload))))
	h.Write(payload)
	h.Sum(sum[:0])
	return sum
}

// String returns the hash as 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText is String, for JSON and YAML.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText is ParseHash, for JSON and YAML.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}

// ParseHash is the reverse of String. It accepts nothing that String does not return.
func ParseHash(s string) (h Hash, err error) {
	if _, err := hex.Decode(h[:], []byte(s[:min(len(s), hex.EncodedLen(len(h)))])); err != nil || h.String() != s {
		return Hash{}, fmt.Errorf("%.80q is no hash: 64 digits of 0-9 and a-f are", s)
	}
	return h, nil
}

// Head is the end of a journal: what the next record is appended to. The zero value is that
// of a journal without messages.
type Head struct {
	// Seq is the sequence of the last message.
	Seq uint64
	// Hash is the hash of that message.
	Hash Hash
	// Broken is the first place at which the chain does not hold; nil if it holds, or if the
	// journal was not read. Nothing is appended to a journal that is broken.
	Broken *Break
}

// Next returns the hash that a record has to carry to be appended to the journal with this subject:
// that of the last message, or Start.
func (h *Head) Next(subject string) Hash {
	if h.Seq == 0 {
		return Start(subject)
	}
	return h.Hash
}

// Tail is a journal from one of its messages on.
type Tail struct {
	// At is that message; zero if the journal has none of that sequence, and
	// the tail is then empty.
	At Head
	// Of is the record that the message is; nil if it is none.
	Of *forge.Record
	// Records are those behind it, in order, and Head is the end of the journal.
	Records []forge.Record
	Head    Head
	// Upto counts the messages of the journal up to At, and Behind those behind it. Where
	// the journal goes on meanwhile, Upto may be more than there are, and is never less.
	Upto, Behind uint64
}

// Break is a place at which the chain of a journal does not hold.
type Break struct {
	// Seq is the sequence of the record that does not follow from the message before it.
	Seq uint64
	// Before is the sequence of that message; 0 if there is none.
	Before uint64
	// Reason says what is wrong, for a person.
	Reason string
}

// Error returns the reason and the place.
func (b *Break) Error() string {
	return fmt.Sprintf("the chain of the journal is broken at message %d: %s", b.Seq, b.Reason)
}

// Ref names a message of a journal.
type Ref struct {
	// Subject is the journal's.
	Subject string `json:"journal"`
	// Seq is the sequence of the message in its stream.
	Seq uint64 `json:"sequence"`
	// Hash is that of the message.
	Hash Hash `json:"hash"`
}

// NewRef returns the Ref of the last message of a machine's journal.
func NewRef(key forge.Key, head *Head) (Ref, error) {
	subject, err := subjects.Journal(key)
	return Ref{subject, head.Seq, head.Hash}, err
}

// String returns the Ref as an event carries it: <subject>@<sequence>:<hash>.
func (r Ref) String() string {
	return r.Subject + "@" + strconv.FormatUint(r.Seq, 10) + ":" + r.Hash.String()
}

// ParseRef is the reverse of String. It accepts nothing that String does not return for a
// machine's journal.
func ParseRef(s string) (r Ref, err error) {
	bad := fmt.Errorf("%.200q names no record of a journal", s)
	subject, rest, _ := strings.Cut(s, "@")
	seq, hash, _ := strings.Cut(rest, ":")
	if _, err := subjects.ParseJournal(subject); err != nil {
		return Ref{}, bad
	}
	if r.Seq, err = strconv.ParseUint(seq, 10, 64); err != nil {
		return Ref{}, bad
	}
	if r.Hash, err = ParseHash(hash); err != nil {
		return Ref{}, bad
	}
	if r.Subject = subject; r.String() != s {
		return Ref{}, bad
	}
	return r, nil
}
