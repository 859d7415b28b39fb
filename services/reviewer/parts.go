package reviewer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/agent/prompt"
)

// Bounds of how a change is shown, in bytes unless it says otherwise. A part is no
// larger than what any agent's tools return at once (codex shortens at 10,000 tokens of
// four bytes), and has no line that they shorten.
const (
	maxInline = 96 << 10 // of a diff in the prompt
	maxPart   = 36 << 10
	partLines = 1900 // lines
	maxInPart = 1500 // of one line
)

// part is a file in which an agent reads a piece of a change.
type part struct {
	name  string // below .forge
	text  string
	lines int
	files []string // what is in it
}

// shown is a change as a reviewer gets to see it.
type shown struct {
	diff  string   // in the prompt
	parts []part   // to read, if it is too large for that
	bare  []string // binary files, of which there is nothing to show
}

// show divides a change: what people write goes into the prompt if there is room
// for it, otherwise into parts; what tools write comes last. All of it can be read.
func show(files []filePatch) shown {
	var s shown
	var written, generated []filePatch
	size := 0
	for _, f := range files {
		size += len(f.text)
		switch {
		case f.binary:
			s.bare = append(s.bare, f.path)
		case f.generated:
			generated = append(generated, f)
		default:
			written = append(written, f)
		}
	}
	if size <= maxInline {
		s.diff = join(files)
		return s
	}
	p := &packer{}
	if diff := join(written); len(diff) <= maxInline {
		s.diff = diff
	} else {
		p.add(written, "")
	}
	p.add(generated, " (lock file, or generated)")
	s.parts = p.parts
	return s
}

func join(files []filePatch) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(f.text)
	}
	return prompt.Visible(b.String())
}

// packer fills parts.
type packer struct {
	parts []part
	b     strings.Builder
	lines int
	files []string
}

// add packs files, each into one part if it fits. note is said of each in the index.
func (p *packer) add(files []filePatch, note string) {
	for _, f := range files {
		text := wrap(prompt.Visible(f.text))
		what := fmt.Sprintf("%s +%d -%d%s", prompt.Path(f.path), f.added, f.deleted, note)
		n := strings.Count(text, "\n")
		if p.b.Len()+len(text) > maxPart || p.lines+n > partLines {
			p.flush()
		}
		if len(text) <= maxPart && n <= partLines {
			p.put(text, what)
			continue
		}
		for i, piece := range pieces(text) {
			if i > 0 {
				what = prompt.Path(f.path) + " (continued)" + note
				piece = "(continues " + prompt.Path(f.path) + ")\n" + piece
			}
			p.put(piece, what)
			p.flush()
		}
	}
	p.flush()
}

func (p *packer) put(text, what string) {
	p.b.WriteString(text)
	p.lines += strings.Count(text, "\n")
	p.files = append(p.files, what)
}

func (p *packer) flush() {
	if p.b.Len() == 0 {
		return
	}
	name := fmt.Sprintf("change-%03d.diff", len(p.parts)+1)
	p.parts = append(p.parts, part{name, p.b.String(), p.lines, p.files})
	p.b.Reset()
	p.lines, p.files = 0, nil
}

// pieces cuts a patch that is too large for a part: before a hunk if one begins in
// the second half of a piece, otherwise between lines.
func pieces(text string) []string {
	const room = maxPart - 2500 // the rest is for the path of what is continued
	var out []string
	start, at, lines, hunk := 0, 0, 0, 0
	for line := range strings.Lines(text) {
		if at-start+len(line) > room || lines == partLines-1 {
			end := at
			if hunk-start > (at-start)/2 {
				end = hunk
			}
			out = append(out, text[start:end])
			lines = strings.Count(text[end:at], "\n")
			start = end
		}
		if strings.HasPrefix(line, "@@") {
			hunk = at
		}
		at += len(line)
		lines++
	}
	return append(out, text[start:])
}

// wrap breaks lines that an agent's Read would shorten.
func wrap(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for len(line) > maxInPart+1 {
			n := maxInPart
			for !utf8.RuneStart(line[n]) {
				n--
			}
			b.WriteString(line[:n] + "\n")
			line = `\ (the line goes on) ` + line[n:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// index says what is in which part.
func index(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, ".forge/%s (%d lines)\n", p.name, p.lines)
		for _, f := range p.files {
			b.WriteString("  " + f + "\n")
		}
	}
	return b.String()
}
