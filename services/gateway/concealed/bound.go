package concealed

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Whoever writes an issue decides how long it takes to read it. Links, emphasis, code and HTML
// of one paragraph are looked for from each mark that may begin one, as far as its end: the time
// grows with its marks times its length. With quotations and lists in one another it grows with
// the square of their depth. So a paragraph in which that is too much is not looked through, nor
// is a line that is too deep, which the list says; and a text that was read is not read again.

// maxWork bounds the marks of a paragraph times its length in bytes.
const maxWork = 16 << 20

// maxDepth bounds the quotations and lists in one another that one line begins or goes on with.
const maxDepth = 50

// marks are the characters at which something may begin in a paragraph.
const marks = "[]!*_<`&\\"

// blocks finds paragraphs, and leaves what is in them alone.
var blocks = parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...))

// crowded adds a part that is not looked through.
func (f *finder) crowded(at int, why string) {
	listed := len(f.found)
	f.add(at, "crowded text", why)
	if len(f.found) > listed {
		f.found[listed].Cut = true
	}
}

// crossOut writes the letter x over a text, and leaves blanks and the ends of lines.
func crossOut(s []byte) {
	for i, c := range s {
		if c > ' ' {
			s[i] = 'x'
		}
	}
}

// level returns the source with the letter x in the place of all that stands too deep in quotations
// and lists, and adds these lines to the list. Empty lines that follow one another are one line:
// a list goes on over any number of them, and each item is asked about each.
func (f *finder) level() []byte {
	out, at := f.source, 0
	empty := false
	for line := range bytes.Lines(f.source) {
		before := empty
		if empty = len(bytes.TrimSpace(line)) == 0; empty && before {
			if &out[0] == &f.source[0] {
				out = bytes.Clone(out)
			}
			out[at-1] = ' '
		}
		if deep := tooDeep(line); deep >= 0 {
			if &out[0] == &f.source[0] {
				out = bytes.Clone(out)
			}
			crossOut(out[at+deep : at+len(line)])
			f.crowded(at, fmt.Sprintf("what stands in more than %d quotations and lists is not looked through", maxDepth))
		}
		at += len(line)
	}
	return out
}

// tooDeep returns the place in a line behind as many quotations and list items, which it begins or
// may go on with, as may be; -1 if there are no more than these. It goes on with one for each two
// blanks at the most: an item begins no less to the right of the one that it is in.
func tooDeep(line []byte) int {
	for depth, blanks, i := 0, 0, 0; ; depth++ {
		from := blanks
		for ; i < len(line) && (line[i] == ' ' || line[i] == '\t'); i++ {
			if blanks++; line[i] == '\t' {
				blanks += 3
			}
		}
		if depth > 0 && blanks > from { // that behind a mark belongs to it
			blanks--
		}
		n := opening(line[i:])
		switch {
		case n == 0:
			return -1
		case depth+blanks/2 >= maxDepth:
			return i
		}
		i += n
	}
}

// opening returns how many bytes begin a quotation or an item of a list at the
// beginning of a text; 0 if none does.
func opening(s []byte) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	switch {
	case n < len(s) && n == 0 && s[0] == '>':
		return 1
	case n < len(s) && (n == 0 && strings.IndexByte("-+*", s[0]) >= 0 || n > 0 && (s[n] == '.' || s[n] == ')')):
		if n++; n == len(s) || s[n] <= ' ' {
			return n
		}
	}
	return 0
}

// thinned returns the source with the letter x in the place of all that stands in paragraphs with
// too many marks, or too deep, and adds these to the list. Every other character is at its place.
func (f *finder) thinned() []byte {
	out := f.level()
	_ = ast.Walk(blocks.Parse(text.NewReader(out)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() == ast.TypeInline || n.IsRaw() || n.Lines().Len() == 0 {
			return ast.WalkContinue, nil
		}
		lines := n.Lines().Sliced(0, n.Lines().Len())
		size, count := 0, 0
		for _, l := range lines {
			size += l.Len()
			for _, c := range l.Value(out) {
				if strings.IndexByte(marks, c) >= 0 {
					count++
				}
			}
		}
		if size*count <= maxWork {
			return ast.WalkContinue, nil
		}
		if &out[0] == &f.source[0] {
			out = bytes.Clone(out)
		}
		for _, l := range lines {
			crossOut(out[l.Start:l.Stop])
		}
		f.crowded(lines[0].Start, fmt.Sprintf("%d bytes with %d marks are not looked through", size, count))
		return ast.WalkContinue, nil
	})
	return out
}

// memory has the lists of the last texts. It is safe for concurrent use.
type memory struct {
	mu    sync.Mutex
	lists map[[sha256.Size]byte][]Finding
	// order has the oldest first.
	order [][sha256.Size]byte
}

// known are the lists of In: a request that waits is read at each look, and by each page.
var known = memory{lists: map[[sha256.Size]byte][]Finding{}}

// maxKnown bounds the texts that are remembered: a page of the inbox has no more.
const maxKnown = 50

// of returns the list of a request, which is made if it is not known.
func (m *memory) of(request [2]string, list func() []Finding) []Finding {
	key := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(request[0]), request[0], request[1]))
	m.mu.Lock()
	found, ok := m.lists[key]
	m.mu.Unlock()
	if ok {
		return found
	}
	found = list()
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.lists[key]; !ok {
		m.lists[key], m.order = found, append(m.order, key)
	}
	if len(m.order) > maxKnown {
		delete(m.lists, m.order[0])
		m.order = slices.Delete(m.order, 0, 1)
	}
	return found
}
