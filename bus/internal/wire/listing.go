package wire

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	forge "github.com/pfl-forge/pfl-forge"
)

// Listing is a list of the intents of a project as of a message of the stream of their journals, as it is kept.
type Listing struct {
	Project forge.ProjectID
	// Seq, Hash and At are of the newest message then, and Gone counts those that the stream had lost.
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

// Marshal returns the list as bytes: values one after the other, each number as a varint and each text with its length.
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
	r := values{rest: data}
	if string(r.text()) != listingKind {
		return nil, Garbage("Listing", "is of another kind")
	}
	l := &Listing{Project: forge.ProjectID(r.text()), Seq: r.number()}
	if n := copy(l.Hash[:], r.text()); n != len(l.Hash) {
		return nil, Garbage("Listing", "has no hash")
	}
	l.At, l.Gone = time.Unix(0, int64(r.number())).UTC(), r.number()
	for n := r.number(); n > 0 && r.err == nil; n-- {
		l.Intents = append(l.Intents, Listed{ID: forge.IntentID(r.text()), Seq: r.number(), Summary: r.text()})
	}
	switch {
	case r.err != nil:
		return nil, r.err
	case len(r.rest) > 0:
		return nil, Garbage("Listing", "has %d bytes more than a list", len(r.rest))
	}
	return l, nil
}

// values takes values off bytes, in the order in which they were added. After an error nothing is left.
type values struct {
	rest []byte
	err  error
}

func (r *values) text() []byte {
	b, n := protowire.ConsumeBytes(r.rest)
	r.behind(n)
	return b
}

func (r *values) number() uint64 {
	v, n := protowire.ConsumeVarint(r.rest)
	r.behind(n)
	return v
}

// behind goes on behind a value of n bytes; below 0 there was none.
func (r *values) behind(n int) {
	if n < 0 {
		r.rest, r.err = nil, Garbage("Listing", "%w", protowire.ParseError(n))
		return
	}
	r.rest = r.rest[n:]
}
