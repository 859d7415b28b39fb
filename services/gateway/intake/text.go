package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Hash names a title and a body. Whoever approves names the hash of the text that they read; a later edit has another one.
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
	// Kind is one of "HTML comment", "HTML attribute", "HTML", "alternative text", "link title" and "invisible character".
	Kind string
	// Text is spelled so that it can be seen, and short.
	Text string
}

// maxConcealed bounds how many findings are listed: more of them do not tell more.
const maxConcealed = 50

// shownText bounds the text of a finding, in characters.
const shownText = 200

var (
	htmlComment   = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)`)
	htmlAttribute = regexp.MustCompile(`(?i)\s(?:alt|title|aria-label|content|value|placeholder|srcset|summary)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)`)
)

// Hidden returns the parts of a Markdown text that a page would not show, in the order of its lines.
func Hidden(markdown string) []Concealed {
	var found []Concealed
	source := []byte(markdown)
	add := func(at int, kind, s string) {
		line := 1 + strings.Count(markdown[:min(max(at, 0), len(markdown))], "\n")
		found = append(found, Concealed{Line: line, Kind: kind, Text: term.Short(s, shownText)})
	}
	_ = ast.Walk(parse(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock:
			hiddenInHTML(n.Lines(), n.ClosureLine, source, add)
		case *ast.RawHTML:
			hiddenInHTML(n.Segments, text.Segment{}, source, add)
		case *ast.Image:
			at := position(n)
			if alt := plainText(n, source); alt != "" {
				add(at, "alternative text", alt)
			}
			if len(n.Title) > 0 {
				add(at, "link title", string(n.Title))
			}
		case *ast.Link:
			if len(n.Title) > 0 {
				add(position(n), "link title", string(n.Title))
			}
		}
		return ast.WalkContinue, nil
	})
	for i, line := range strings.Split(markdown, "\n") {
		if plain := strings.TrimSuffix(line, "\r"); term.Sanitize(plain) != plain {
			found = append(found, Concealed{Line: i + 1, Kind: "invisible character", Text: term.Short(plain, shownText)})
		}
	}
	slices.SortStableFunc(found, func(a, b Concealed) int { return a.Line - b.Line })
	return found[:min(len(found), maxConcealed)]
}

// hiddenInHTML reports comments, attributes that hold text, and otherwise that there is HTML at all: styles can hide
// any of it.
func hiddenInHTML(lines *text.Segments, closure text.Segment, source []byte, add func(at int, kind, s string)) {
	if lines.Len() == 0 && closure.IsEmpty() {
		return
	}
	start, stop := closure.Start, closure.Stop
	if lines.Len() > 0 {
		start, stop = lines.At(0).Start, max(lines.At(lines.Len()-1).Stop, closure.Stop)
	}
	html := string(source[start:stop])
	some := false
	for _, at := range htmlComment.FindAllStringIndex(html, -1) {
		add(start+at[0], "HTML comment", html[at[0]:at[1]])
		some = true
	}
	for _, at := range htmlAttribute.FindAllStringIndex(html, -1) {
		add(start+at[0], "HTML attribute", strings.TrimSpace(html[at[0]:at[1]]))
		some = true
	}
	if !some && !strings.HasPrefix(html, "</") {
		add(start, "HTML", html)
	}
}

// Shown returns a text as a fenced block of Markdown: every character of it is visible, and nothing in it ends the block.
func Shown(markdown string) string {
	markdown = term.Sanitize(markdown)
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
