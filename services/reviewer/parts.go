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
	// maxInline bounds a diff in the prompt, in bytes.
	maxInline = 96 << 10
	// maxPart bounds a part, in bytes: no larger than what any agent's tools return
	// at once (codex shortens at 10,000 tokens of four bytes).
	maxPart = 36 << 10
	// partLines bounds the lines of a part.
	partLines = 1900
	// maxInPart bounds a line in a part, in bytes: tools shorten longer ones.
	maxInPart = 1500
)

// part is a file in which an agent reads a piece of a change.
type part struct {
	name  string // below .forge
	text  string
	lines int
	// files has a line for each file in it.
	files []string
}

// shown is a change as a reviewer sees it.
type shown struct {
	// diff is in the prompt.
	diff string
	// parts are files to read, if the change is too large for the prompt.
	parts []part
	// bare are binary files, which are only named.
	bare []string
}

// show divides a change: files that people write go into the prompt if they fit,
// otherwise into parts; generated files come last. All of it can be read.
func show(files []filePatch) shown {
	written, generated, binary := divide(files)
	s := shown{bare: binary}
	size := 0
	for _, f := range files {
		size += len(f.text)
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

// divide tells the files that people write from generated ones, each in their order, and
// from binary files, of which it returns the paths: they have no text to show.
func divide(files []filePatch) (written, generated []filePatch, binary []string) {
	for _, f := range files {
		switch {
		case f.binary:
			binary = append(binary, f.path)
		case f.generated:
			generated = append(generated, f)
		default:
			written = append(written, f)
		}
	}
	return written, generated, binary
}

// join returns the patches as one text, with characters that hide or reorder text spelled
// out.
func join(files []filePatch) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(f.text)
	}
	return prompt.Visible(b.String())
}

// packer fills parts in order.
type packer struct {
	parts []part
	b     strings.Builder
	lines int
	files []string
}

// add packs files, each into one part if it fits. note follows each in the index.
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

// put adds a piece to the present part.
func (p *packer) put(text, what string) {
	p.b.WriteString(text)
	p.lines += strings.Count(text, "\n")
	p.files = append(p.files, what)
}

// flush ends the present part.
func (p *packer) flush() {
	if p.b.Len() == 0 {
		return
	}
	name := fmt.Sprintf("change-%03d.diff", len(p.parts)+1)
	p.parts = append(p.parts, part{name, p.b.String(), p.lines, p.files})
	p.b.Reset()
	p.lines, p.files = 0, nil
}

// pieces divides a patch that is too large for a part: before a hunk if one begins in
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

// wrap breaks lines that an agent's tools would shorten.
func wrap(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for len(line) > maxInPart+1 {
			n := maxInPart
			for !utf8.RuneStart(line[n]) {
				n--
			}
			b.WriteString(line[:n] + "\n")
			line = `\ (the line continues) ` + line[n:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// index returns the files of each part.
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
