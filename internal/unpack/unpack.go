// Package unpack takes values off bytes in which they stand one after the other: numbers as varints, texts with their length before them, and
// texts of a known length. Whoever puts them there uses binary.AppendUvarint or package protowire, which write the same.
package unpack

import "encoding/binary"

// Reader has the bytes that are left. Once a value is not there, nothing is left, and all that follow are zero: so a caller may look at
// Bad once for several of them, and has to before it goes by a number that was read.
type Reader struct {
	rest []byte
	bad  bool
}

// New returns a Reader of bytes. What it returns is part of them, and no copy.
func New(data []byte) *Reader { return &Reader{rest: data} }

// Bad reports whether a value was not there.
func (r *Reader) Bad() bool { return r.bad }

// Left returns how many bytes are left.
func (r *Reader) Left() int { return len(r.rest) }

// Bytes returns the next n bytes.
func (r *Reader) Bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.rest, r.bad = nil, true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// Number returns the next number.
func (r *Reader) Number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.rest, r.bad = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Text returns the next text that has its length before it.
func (r *Reader) Text() []byte { return r.Bytes(r.Number()) }
