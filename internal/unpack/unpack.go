// Package unpack takes values off bytes in which they stand one after the other: numbers
// as varints, texts with their length before them, and texts of a known length. Whoever
// puts them there uses binary.AppendUvarint or package protowire, which write the same.
package unpack

import "encoding/binary"

// Reader has the bytes that are left. Once a value is not there, nothing is
// left, and all that follow are zero: so a caller may look at Bad once for
// several of them, and has to before it goes by a number that was read.
type Reader struct {
	rest string
	bad  bool
}

// New returns a Reader of bytes. What it returns is part of one copy of them:
// ten thousand texts are one piece of memory.
func New(data []byte) *Reader { return &Reader{rest: string(data)} }

// Bad reports whether a value was not there.
func (r *Reader) Bad() bool { return r.bad }

// Left returns how many bytes are left.
func (r *Reader) Left() int { return len(r.rest) }

// Bytes returns the next n bytes.
func (r *Reader) Bytes(n uint64) string {
	if n > uint64(len(r.rest)) {
		r.rest, r.bad = "", true
		return ""
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// Number returns the next number.
func (r *Reader) Number() uint64 {
	// A varint has its length in itself: no more bytes than the longest has are looked at.
	var b [binary.MaxVarintLen64]byte
	v, n := binary.Uvarint(b[:copy(b[:], r.rest)])
	if n <= 0 {
		r.rest, r.bad = "", true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Count returns the number of values that follow, of a byte each at least: no
// more than there can be, so that memory may be taken for them.
func (r *Reader) Count() int {
	n := r.Number()
	if n > uint64(len(r.rest)) {
		r.rest, r.bad = "", true
		return 0
	}
	return int(n)
}

// Text returns the next text that has its length before it.
func (r *Reader) Text() string { return r.Bytes(r.Number()) }
