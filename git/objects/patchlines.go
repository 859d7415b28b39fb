package objects

import (
	"bytes"
	"hash"
)

// patchLines feeds a patch to a hash without what depends on the place: line numbers, and the object names of
// text files. Those of binary files stay, they stand for the content.
type patchLines struct {
	sum   hash.Hash
	rest  []byte // an unfinished line
	index []byte // the last "index" line, not yet known to be of a binary file
	body  int    // lines that the hunk still has of either side; 0 outside of hunks
}

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

func (p *patchLines) flush() {
	if len(p.rest) > 0 {
		p.line(p.rest)
	}
}

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
