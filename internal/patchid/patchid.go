// Package patchid computes the id of a change from the text of its patch. Who has git and the
// commits, and who has only a patch that was stored, come to the same id of the same change.
//
// It is git's own patch-id: line numbers and object names do not count. Implementers name
// a verified change by it, approvals are bound to it, and a runner that shows a stored
// change computes it again. Two texts with one id have the same lines in the same files.
package patchid

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// Sum feeds a patch to a hash, without the parts that depend on the
// place: line numbers, and the object names of text files. Those of binary
// files stay, as they stand for the content. A patch may come in pieces of any
// length.
type Sum struct {
	sum hash.Hash
	// rest is a line that has no end yet.
	rest []byte
	// index is the last "index" line: whether it is of a binary file shows in
	// the next line.
	index []byte
	// body counts the lines that the hunk still has of either side; 0 outside
	// of hunks. Inside, a line is content even if it looks like a header.
	body int
}

// New returns the sum of an empty patch.
func New() *Sum { return &Sum{sum: sha256.New()} }

// Of returns the id of a patch.
func Of(text []byte) string {
	s := New()
	_, _ = s.Write(text) // it cannot fail
	return s.ID()
}

// Write takes a part of a patch. A line may be split over several calls.
func (p *Sum) Write(b []byte) (int, error) {
	n := len(b)
	for {
		line, more, ok := bytes.Cut(b, []byte{'\n'})
		if !ok {
			p.rest = append(p.rest, b...)
			return n, nil
		}
		p.line(append(p.rest, line...))
		p.rest, b = p.rest[:0], more
	}
}

// ID returns the id of everything that was written. Nothing is to be written afterwards.
func (p *Sum) ID() string {
	if len(p.rest) > 0 { // a last line without an end
		p.line(p.rest)
		p.rest = nil
	}
	return hex.EncodeToString(p.sum.Sum(nil))
}

// line hashes one line, given without its end.
func (p *Sum) line(l []byte) {
	switch {
	case p.body > 0: // content, whatever it looks like
		if len(l) > 0 && l[0] == ' ' {
			p.body -= 2
		} else if len(l) > 0 && l[0] != '\\' {
			p.body--
		}
	case bytes.HasPrefix(l, []byte("index ")):
		p.index = append(p.index[:0], l...)
		return
	case bytes.HasPrefix(l, []byte("Binary files ")):
		p.sum.Write(p.index)
	case bytes.HasPrefix(l, []byte("@@ -")):
		p.body = hunkLines(l)
		l = []byte("@@")
	}
	p.sum.Write(l)
	p.sum.Write([]byte{'\n'})
}

// hunkLines adds up the two counts of "@@ -1,4 +1,5 @@".
func hunkLines(l []byte) int {
	f := bytes.Fields(l)
	if len(f) < 3 {
		return 0
	}
	return HunkCount(f[1]) + HunkCount(f[2])
}

// HunkCount returns the count of one side, which git leaves out when it is 1.
func HunkCount(side []byte) int {
	_, count, ok := bytes.Cut(side, []byte{','})
	if !ok {
		return 1
	}
	n := 0
	for _, c := range count {
		if c >= '0' && c <= '9' {
			n = n*10 + int(c-'0')
		}
	}
	return n
}
