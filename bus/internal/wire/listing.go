package wire

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/unpack"
)

// Listing is a list of the intents of a project as of a message of the stream
// of their journals, as it is kept.
type Listing struct {
	Project forge.ProjectID
	// Seq, Hash and At are of the newest message then, and Gone counts those
	// that the stream had lost.
	Seq  uint64
	Hash [32]byte
	At   time.Time
	Gone uint64
	// Intents has every intent that has a journal, in no order.
	Intents []Listed
}

// Listed is an intent in a Listing.
type Listed struct {
	ID forge.IntentID
	// Seq is that of the last message of its journal, at most that of the list.
	Seq uint64
	// Summary has the bytes of its summary; empty if no record of its journal can be read.
	Summary []byte
}

// listingKind begins the bytes of a Listing. Another version of it has another text here.
const listingKind = "pfl-forge listed 1"

// Marshal returns the list as bytes: values one after the other, each number as
// a varint and each text with its length.
func (l *Listing) Marshal() []byte {
	size := 200
	for i := range l.Intents {
		size += len(l.Intents[i].ID) + len(l.Intents[i].Summary) + 20
	}
	b := protowire.AppendString(make([]byte, 0, size), listingKind)
	b = protowire.AppendString(b, string(l.Project))
	b = protowire.AppendVarint(b, l.Seq)
	b = protowire.AppendBytes(b, l.Hash[:])
	b = protowire.AppendVarint(b, uint64(l.At.UnixNano()))
	b = protowire.AppendVarint(b, l.Gone)
	b = protowire.AppendVarint(b, uint64(len(l.Intents)))
	for i := range l.Intents {
		one := &l.Intents[i]
		b = protowire.AppendString(b, string(one.ID))
		b = protowire.AppendVarint(b, one.Seq)
		b = protowire.AppendBytes(b, one.Summary)
	}
	return b
}

// UnmarshalListing reads a list. The error is a *GarbageError, also for a list of another version.
func UnmarshalListing(data []byte) (*Listing, error) {
	r := unpack.New(data)
	if r.Text() != listingKind {
		return nil, Garbage("Listing", "is of another kind")
	}
	l := &Listing{Project: forge.ProjectID(r.Text()), Seq: r.Number()}
	if n := copy(l.Hash[:], r.Text()); n != len(l.Hash) {
		return nil, Garbage("Listing", "has no hash")
	}
	l.At, l.Gone = time.Unix(0, int64(r.Number())).UTC(), r.Number()
	for n := r.Number(); n > 0 && !r.Bad(); n-- {
		l.Intents = append(l.Intents, Listed{ID: forge.IntentID(r.Text()), Seq: r.Number(), Summary: []byte(r.Text())})
	}
	switch {
	case r.Bad():
		return nil, Garbage("Listing", "is cut off")
	case r.Left() > 0:
		return nil, Garbage("Listing", "has %d bytes more than a list", r.Left())
	}
	return l, nil
}
