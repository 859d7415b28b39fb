package objects

import (
	"bytes"
	"hash"
)

// patchLines feeds a patch to a hash, without the parts that depend on the
// place: line numbers, and the object names of text files. Those of binary
// files stay, as they stand for the content. A patch may come in pieces of any
// length.
type patchLines struct {
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

// Write takes a part of a patch. A line may be split over several calls.
func (p *patchLines) Write(b []byte) (int, error) {
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

// flush hashes a last line without an end.
func (p *patchLines) flush() {
	if len(p.rest) > 0 {
		p.line(p.rest)
	}
}

// line hashes one line, given without its end.
func (p *patchLines) line(l []byte) {
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
	return hunkCount(f[1]) + hunkCount(f[2])
}

// hunkCount returns the count of one side, which git leaves out when it is 1.
func hunkCount(side []byte) int {
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
