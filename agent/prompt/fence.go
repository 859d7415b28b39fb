package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of one text in a prompt, in bytes (MaxLine: in characters, MaxFiles: in
// paths).
const (
	MaxText   = 80 << 10 // a request of forge.MaxBody is shown whole
	MaxOutput = 24 << 10
	MaxCode   = 256 << 10
	MaxLine   = 200
	MaxFiles  = 200 // paths of one list
)

// Text returns prose in a fenced block: its first MaxText bytes.
func Text(name, text string) string {
	return fence(name, term.Sanitize(text), MaxText, head)
}

// Output returns a program's output in a fenced block: its last MaxOutput bytes.
func Output(name, text string) string {
	return fence(name, term.Sanitize(text), MaxOutput, tail)
}

// Code returns code in a fenced block, its first MaxCode bytes. Characters that Text
// drops, such as escape sequences, are spelled out, because they may matter.
func Code(name, text string) string {
	return fence(name, Visible(text), MaxCode, head)
}

// Line returns a text as one quoted line of at most MaxLine characters.
func Line(text string) string { return strconv.Quote(term.Short(text, MaxLine)) }

// Path returns a path, quoted. A shortened one would name another file, so one that
// is too long to be a path says so.
func Path(path string) string {
	const most = 500 // bytes
	if len(path) > most {
		return strconv.Quote(path[:most]) + " (and so on: it is cut)"
	}
	return strconv.Quote(path)
}

// Files returns a title and a list of at most MaxFiles paths below it.
func Files(title string, paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(title)
	for i, p := range paths {
		if i == MaxFiles {
			fmt.Fprintf(&b, "\n- (%d more are left out)", len(paths)-MaxFiles)
			break
		}
		b.WriteString("\n- " + Path(p))
	}
	return b.String()
}

// keptEnd says which end of a long text is kept.
type keptEnd int

const (
	head keptEnd = iota
	tail
)

// fence puts text between <name-key> and </name-key>; a blank text gives "". The key is
// a hash of the text that does not occur in it, so that nothing in the text ends the
// block, and the same text always gives the same block. A note about a cut is put
// outside.
func fence(name, text string, most int, end keptEnd) string {
	text = strings.Trim(text, "\n")
	if strings.TrimSpace(text) == "" {
		return ""
	}
	text, note := cut(text, most, end)
	k := key(name, text)
	block := "<" + name + "-" + k + ">\n" + text + "\n</" + name + "-" + k + ">"
	switch {
	case note == "":
		return block
	case end == tail:
		return note + "\n" + block
	}
	return block + "\n" + note
}

// key returns a hash that is not in the text.
func key(name, text string) string {
	lower := strings.ToLower(text)
	for i := 0; ; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", name, i, text))
		if k := hex.EncodeToString(sum[:5]); !strings.Contains(lower, k) {
			return k
		}
	}
}

// cut returns at most so many bytes of a text, at the end of a line where one is
// near, and a note that says how much is missing.
func cut(text string, most int, end keptEnd) (kept, note string) {
	if len(text) <= most {
		return text, ""
	}
	const near = 2000
	if end == tail {
		kept = text[len(text)-most:]
		for !utf8.RuneStart(kept[0]) {
			kept = kept[1:]
		}
		if i := strings.IndexByte(kept, '\n'); i >= 0 && i < near {
			kept = kept[i+1:]
		}
		return kept, fmt.Sprintf("(The first %d of %d bytes are left out.)", len(text)-len(kept), len(text))
	}
	kept = text[:most]
	for !utf8.RuneStart(text[len(kept)]) {
		kept = kept[:len(kept)-1]
	}
	if i := strings.LastIndexByte(kept, '\n'); i > len(kept)-near {
		kept = kept[:i]
	}
	return kept, fmt.Sprintf("(The last %d of %d bytes are left out.)", len(text)-len(kept), len(text))
}
