package intake

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Hash names a title and a body. Whoever approves names the whole hash of the text that they read ([Command.Approves]); a later edit
// has another one.
func Hash(title, body string) string {
	h := sha256.New()
	for _, part := range []string{title, body} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Concealed is text that a reader of the rendered page would not see, and an agent would.
type Concealed struct {
	// Line counts from 1 in the text.
	Line int
	// Kind is one of "HTML comment", "HTML attribute", "HTML", "alternative text", "link title", "link without text",
	// "reference definition", "footnote", "code's first line" and "invisible character".
	Kind string
	// Text is spelled so that it can be seen, and short: a longer one is cut in its middle.
	Text string
}

const (
	// maxConcealed bounds how many findings of a kind are listed: more of them do not tell more.
	maxConcealed = 10
	// shownText bounds the text of a finding, in characters.
	shownText = 200
)

var (
	htmlComment   = pattern.New(`(?s)<!--.*?(?:-->|$)`)
	htmlAttribute = pattern.New(`(?i)\s(?:alt|title|aria-label|content|value|placeholder|srcset|summary)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)`)
	htmlEnd       = pattern.New(`^\s*</[A-Za-z][A-Za-z0-9-]*\s*>\s*$`)
	footnote      = pattern.New(`^[ \t]*\[\^[^\]]+\]:`)
	language      = pattern.New(`^[A-Za-z0-9_+#.-]{1,30}$`)
	entity        = pattern.New(`&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)
)

// hidden collects findings in a text.
type hidden struct {
	source []byte
	found  []Concealed
	// count says how many there are of each kind, and left which finding stands for those that are not listed.
	count, left map[string]int
}

// add adds a finding at a place of the text.
func (h *hidden) add(at int, kind, s string) {
	h.count[kind]++
	switch n := h.count[kind]; {
	case n <= maxConcealed:
		h.found = append(h.found, Concealed{Line: h.line(at), Kind: kind, Text: brief(s)})
	case n == maxConcealed+1:
		h.left[kind] = len(h.found)
		h.found = append(h.found, Concealed{Line: h.line(at), Kind: kind})
	}
}

// line returns the line of a place.
func (h *hidden) line(at int) int {
	return 1 + bytes.Count(h.source[:min(max(at, 0), len(h.source))], []byte("\n"))
}

// Hidden returns the parts of a Markdown text that a page would not show, in the order of its lines. Of each kind only the first
// are listed, and then how many more there are.
func Hidden(markdown string) []Concealed {
	h := hidden{source: []byte(markdown), left: map[string]int{}, count: map[string]int{}}
	_ = ast.Walk(parse(h.source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			h.node(n)
		}
		return ast.WalkContinue, nil
	})
	at := 0
	for line := range strings.Lines(markdown) {
		if plain := strings.TrimRight(line, "\r\n"); isConcealing(plain) {
			h.add(at, "invisible character", plain)
		}
		at += len(line)
	}
	for kind, i := range h.left {
		h.found[i].Text = fmt.Sprintf("and %d more", h.count[kind]-maxConcealed)
	}
	slices.SortStableFunc(h.found, func(a, b Concealed) int { return a.Line - b.Line })
	return h.found
}

// node adds the findings of one node of the text.
func (h *hidden) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.HTMLBlock:
		h.html(n.Lines(), n.ClosureLine)
	case *ast.RawHTML:
		h.html(n.Segments, text.Segment{})
	case *ast.Image:
		if alt := plainText(n, h.source); alt != "" {
			h.add(position(n), "alternative text", alt)
		}
		h.link(n, n.Destination, n.Title)
	case *ast.Link:
		h.link(n, n.Destination, n.Title)
	case *ast.LinkReferenceDefinition:
		h.add(n.Lines().At(0).Start, "reference definition", string(n.Lines().Value(h.source)))
	case *ast.FencedCodeBlock:
		if n.Info != nil && !language.MatchString(string(bytes.TrimSpace(n.Info.Segment.Value(h.source)))) {
			h.add(n.Info.Segment.Start, "code's first line", string(n.Info.Segment.Value(h.source)))
		}
	case *ast.Paragraph, *ast.TextBlock:
		for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
			if s := line.Value(h.source); footnote.MatchString(string(s)) { // pages show it at their end, if anything refers to it
				h.add(line.Start, "footnote", string(s))
			}
		}
	}
}

// link adds the title of a link or an image, and where it leads if nothing of it can be seen.
func (h *hidden) link(n ast.Node, destination, title []byte) {
	if strings.TrimSpace(spelled.ReplaceAllString(term.Visible(html.UnescapeString(plainText(n, h.source))), "")) == "" && !hasImage(n) {
		h.add(position(n), "link without text", string(destination))
	}
	if len(title) > 0 {
		h.add(position(n), "link title", string(title))
	}
}

// hasImage reports whether a link shows an image, which is listed by itself.
func hasImage(link ast.Node) bool {
	for n := link.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindImage {
			return true
		}
	}
	return false
}

// isConcealing reports whether a line holds a character that cannot be seen, itself or as an entity.
func isConcealing(line string) bool {
	if term.Visible(line) != line {
		return true
	}
	return slices.ContainsFunc(entity.FindAllString(line, -1), func(s string) bool {
		r := html.UnescapeString(s)
		return term.Visible(r) != r
	})
}

// html adds comments, attributes that hold text, and the HTML itself, unless it is one comment or one closing tag: styles can
// hide any of it.
func (h *hidden) html(lines *text.Segments, closure text.Segment) {
	if lines.Len() == 0 && closure.IsEmpty() {
		return
	}
	start, stop := closure.Start, closure.Stop
	if lines.Len() > 0 {
		start, stop = lines.At(0).Start, max(lines.At(lines.Len()-1).Stop, closure.Stop)
	}
	source := string(h.source[start:stop])
	all := false
	for _, at := range htmlComment.FindAllStringIndex(source, -1) {
		h.add(start+at[0], "HTML comment", source[at[0]:at[1]])
		all = all || source[at[0]:at[1]] == strings.TrimSpace(source)
	}
	for _, at := range htmlAttribute.FindAllStringIndex(source, -1) {
		h.add(start+at[0], "HTML attribute", strings.TrimSpace(source[at[0]:at[1]]))
	}
	if !all && !htmlEnd.MatchString(source) {
		h.add(start, "HTML", source)
	}
}

// brief returns a text on one line in which every character can be seen. What is left out of a long one is its middle: both ends
// are where a reader looks.
func brief(s string) string {
	r := []rune(strings.Join(strings.Fields(term.Visible(s)), " "))
	if len(r) <= shownText {
		return string(r)
	}
	const end = shownText / 2
	return fmt.Sprintf("%s … [%d characters] … %s", string(r[:end]), len(r)-2*end, string(r[len(r)-end:]))
}

// Shown returns a text as a fenced block of Markdown: every character of it is visible, and nothing in it ends the block.
func Shown(markdown string) string {
	markdown = term.Visible(markdown)
	fence := "```"
	for strings.Contains(markdown, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimSuffix(markdown, "\n") + "\n" + fence + "\n"
}

// parse reads Markdown as forges do, as far as it matters where text stands.
func parse(source []byte) ast.Node {
	return goldmark.DefaultParser().Parse(text.NewReader(source))
}

// position returns where an inline node stands: where its first text does, or else the block that holds it.
func position(n ast.Node) int {
	at := -1
	_ = ast.Walk(n, func(c ast.Node, _ bool) (ast.WalkStatus, error) {
		if t, ok := c.(*ast.Text); ok {
			at = t.Segment.Start
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	for p := n; at < 0 && p != nil; p = p.Parent() {
		if p.Type() == ast.TypeBlock && p.Lines().Len() > 0 {
			at = p.Lines().At(0).Start
		}
	}
	return at
}

// plainText returns the text in a node, without marks.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := c.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
