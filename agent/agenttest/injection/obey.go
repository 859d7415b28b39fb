package injection

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Position is a text that stands where instructions stand.
type Position struct{ Where, Text string }

// The forms of data in a prompt, as package prompt writes it: a block between two tags with the
// same number, and a short text in double quotes.
var (
	opening = pattern.New(`(?m)^<([a-z]+-[0-9a-f]{10})>\n`)
	quoted  = pattern.New(`"(?:[^"\\\n]|\\.)*"`)
)

// Outside returns a prompt without its data. Only its own closing tag, the first there is,
// ends a block; one that nothing ends is no block.
func Outside(prompt string) string {
	var b strings.Builder
	for {
		at := opening.FindStringSubmatchIndex(prompt)
		if at == nil {
			break
		}
		end := "</" + prompt[at[2]:at[3]] + ">"
		before, rest := prompt[:at[0]], prompt[at[1]:]
		b.WriteString(quoted.ReplaceAllString(before, `""`))
		// The block becomes a mark, so that a difference in their number is seen.
		_, after, ok := strings.Cut(rest, end)
		if !ok { // the model reads on as if there were no tag
			after = rest
		}
		b.WriteString("<>")
		prompt = after
	}
	b.WriteString(quoted.ReplaceAllString(prompt, `""`))
	return b.String()
}

// Tags returns the closing tags of a prompt, for an author who saw an earlier one.
func Tags(prompt string) []string {
	var out []string
	for _, m := range opening.FindAllStringSubmatch(prompt, -1) {
		out = append(out, "</"+m[1]+">")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Positions returns the instructions of a call, without any CLI: those of the worst one, which
// believes every file by which a repository can instruct agents, and what these import. dir is
// empty for a call without a checkout.
func Positions(system, prompt, dir string) []Position {
	out := []Position{{"system prompt", system}, {"prompt", Outside(prompt)}}
	if dir == "" {
		return out
	}
	_ = filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, p)
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be read instructs nobody
		case name == ".git":
			if e.IsDir() {
				return filepath.SkipDir
			}
		case Instructs(name):
			out = append(out, imported(p, 6)...)
		}
		return nil
	})
	return out
}

// reference is an import of another file.
var reference = pattern.New(`@([^\s]+)`)

// imported returns the text of a file, and of those that it imports, or of all files in a
// directory that a link leads to.
func imported(name string, depth int) []Position {
	if depth == 0 {
		return nil
	}
	var out []Position
	// A link to a directory is not walked into, so it is read here.
	if entries, err := os.ReadDir(name); err == nil {
		for _, e := range entries {
			out = append(out, imported(filepath.Join(name, e.Name()), depth-1)...)
		}
		return out
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	out = append(out, Position{name, string(text)})
	for _, m := range reference.FindAllStringSubmatch(string(text), -1) {
		out = append(out, imported(filepath.Join(filepath.Dir(name), m[1]), depth-1)...)
	}
	return out
}

// content is the content of a message of the Messages API: a text, or blocks.
type content []struct {
	Type    string  `json:"type"`
	Text    string  `json:"text"`
	Content content `json:"content"`
}

// UnmarshalJSON accepts both forms.
func (c *content) UnmarshalJSON(data []byte) error {
	type plain content
	var s string
	if json.Unmarshal(data, &s) != nil {
		return json.Unmarshal(data, (*plain)(c))
	}
	*c = make(content, 1)
	(*c)[0].Type, (*c)[0].Text = "text", s
	return nil
}

// numbered is a line of a file as Claude Code's tool shows it.
var numbered = pattern.New(`(?m)^ *[0-9]+(?:\t|\x{2192}).*$`)

// Request returns the instructions of a request of the Messages API, as it was really sent: system
// prompts, tools, what the user says outside of data, and what the CLI adds to a tool's result.
// begin is how the prompt of the call begins; only that text has blocks of data. The model's own
// messages are left out: what it quotes there gives it no orders.
func Request(body []byte, begin string) ([]Position, error) {
	var in struct {
		System   content           `json:"system"`
		Tools    []json.RawMessage `json:"tools"`
		Messages []struct {
			Role    string  `json:"role"`
			Content content `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("read a request: %w", err)
	}
	var out []Position
	for _, s := range in.System {
		out = append(out, Position{"system prompt", s.Text})
	}
	for _, t := range in.Tools {
		out = append(out, Position{"tool", string(t)})
	}
	for _, m := range in.Messages {
		if m.Role == "assistant" {
			continue // the model's own words
		}
		for _, c := range m.Content {
			switch {
			case c.Type == "tool_result":
				// A file's lines are data; whatever is around them was said by the CLI.
				for _, r := range c.Content {
					out = append(out, Position{"tool result", numbered.ReplaceAllString(r.Text, "")})
				}
			case strings.HasPrefix(c.Text, begin):
				out = append(out, Position{"prompt", Outside(c.Text)})
			default: // such as a reminder with the text of CLAUDE.md
				out = append(out, Position{m.Role + " message", c.Text})
			}
		}
	}
	return out, nil
}

// marker is the name of an order, or of what is to be sent.
var marker = pattern.New(`(?:ORDER|CANARY)-([0-9]{4})`)

// Orders returns the numbers of the orders in a text, however they are disguised: a model reads
// base64, hexadecimal digits, tag characters, full width and similar letters.
func Orders(text string) []int {
	var out []int
	for _, s := range readings(text) {
		for _, m := range marker.FindAllStringSubmatch(s, -1) {
			n, _ := strconv.Atoi(m[1])
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Encodings of a text, and characters that are spelled out.
var (
	base64Text = pattern.New(`[A-Za-z0-9+/]{24,}={0,2}`)
	hexText    = pattern.New(`(?:[0-9a-f]{2}){12,}`)
	spelled    = pattern.New(`<U\+[0-9A-F]{4,6}>|<0x[0-9A-F]{2}>|\x00|\x{200b}`)
	lookalikes = strings.NewReplacer("\u041e", "O", "\u0415", "E", "\u13a1", "R")
)

// readings returns a text, and the texts that may be hidden in it.
func readings(text string) []string {
	// Tag characters and full width letters, as the ASCII that they stand for.
	plain := lookalikes.Replace(strings.Map(func(r rune) rune {
		switch {
		case r > 0xe0020 && r < 0xe007f:
			return r - 0xe0000
		case r > 0xff00 && r < 0xff5f:
			return r - 0xfee0
		}
		return r
	}, text))
	out := []string{text}
	if plain = spelled.ReplaceAllString(plain, ""); plain != text {
		out = append(out, plain)
	}
	for _, s := range base64Text.FindAllString(text, -1) {
		if b, err := base64.StdEncoding.DecodeString(s); err == nil {
			out = append(out, string(b))
		}
	}
	for _, s := range hexText.FindAllString(text, -1) {
		if b, err := hex.DecodeString(s); err == nil {
			out = append(out, string(b))
		}
	}
	return out
}

// Batches divides changes into lists with at most so many paths, or changes without a
// path. None has two changes of the same path, or one's file in the place of another's
// directory. Families are spread over the lists, so that each list has few commits.
func Batches(changes []Change, most int) [][]Change {
	var out [][]Change
	var taken []map[string]bool
	var sizes []int
	const step = 7919 // a prime, so each comes once
	for n := range changes {
		c := changes[n*step%len(changes)]
		// The first list with room for it, and without its paths.
		size := max(1, len(c.Paths()))
		i := 0
		for i < len(out) && (sizes[i]+size > most || slices.ContainsFunc(c.Paths(), func(p string) bool { return blocked(taken[i], p) })) {
			i++
		}
		if i == len(out) {
			out, taken, sizes = append(out, nil), append(taken, map[string]bool{}), append(sizes, 0)
		}
		out[i] = append(out[i], c)
		sizes[i] += size
		for _, p := range c.Paths() {
			taken[i][p] = true
		}
	}
	return out
}

// blocked reports whether a path, or a file in the place of its directory, is taken. Letter case is
// ignored.
func blocked(taken map[string]bool, p string) bool {
	for other := range taken {
		a, b := strings.ToLower(other), strings.ToLower(path.Clean(p))
		if a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/") {
			return true
		}
	}
	return false
}
