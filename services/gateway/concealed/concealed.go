// Package concealed finds what a page of a forge does not show of a request,
// and an agent gets: comments, attributes, alternative texts, characters that
// cannot be seen. Whoever decides about a request reads the list of it: in our
// comment on the issue, in the console, and in the inbox of the command line.
package concealed

import (
	"bytes"
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

// Finding is text that a reader of the page would not see, and an agent would.
type Finding struct {
	// Line counts from 1 in the body; 0 is the title.
	Line int `json:"line" yaml:"line"`
	// Kind is one of "HTML comment", "HTML attribute", "HTML", "collapsed section", "alternative
	// text", "link title", "link without text", "reference definition", "footnote", "code's
	// first line", "table cell", "formula", "diagram", "crowded text" and "invisible character".
	Kind string `json:"kind" yaml:"kind"`
	// Text is on one line, spelled so that every character of it can be seen. A
	// longer one is cut in its middle.
	Text string `json:"text" yaml:"text"`
	// Cut says that Text is not all of it, or that it stands for more findings of the kind.
	Cut bool `json:"cut,omitempty" yaml:"cut,omitempty"`
}

// String returns the finding in words, with its place.
func (f Finding) String() string {
	place := "title"
	if f.Line > 0 {
		place = fmt.Sprintf("line %d", f.Line)
	}
	return fmt.Sprintf("%s, %s: %s", place, f.Kind, f.Text)
}

// Whole reports whether a list has all that is hidden, and of each finding all of its text.
func Whole(list []Finding) bool {
	return !slices.ContainsFunc(list, func(f Finding) bool { return f.Cut })
}

const (
	// maxOfKind bounds how many findings of a kind are listed: more of them do not tell more.
	maxOfKind = 10
	// shownText bounds the text of a finding, in characters.
	shownText = 200
	// collapsed is the kind that is looked for by its beginning and its end.
	collapsed = "collapsed section"
	// formula is the kind of what is shown as one, in a paragraph or a block.
	formula = "formula"
)

var (
	htmlComment   = pattern.New(`(?s)<!--.*?(?:-->|$)`)
	htmlAttribute = pattern.New(`(?i)\s(?:alt|title|aria-label|content|value|placeholder|srcset|summary)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)`)
	htmlEnd       = pattern.New(`^\s*</[A-Za-z][A-Za-z0-9-]*\s*>\s*$`)
	footnote      = pattern.New(`^[ \t]*\[\^[^\]]+\]:`)
	language      = pattern.New(`^[A-Za-z0-9_+#.-]{1,30}$`)
	entity        = pattern.New(`&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)
	// spelled finds the characters that term spells out because they cannot be seen.
	spelled = pattern.New(`<U\+[0-9A-F]{4,6}>`)
)

// finder collects findings in a body.
type finder struct {
	source []byte
	// lower is the same in small letters, byte for byte.
	lower []byte
	found []Finding
	// count says how many there are of each kind, and left which finding stands
	// for those that are not listed.
	count, left map[string]int
}

// full reports whether further findings of a kind are only counted, so that
// their texts are not asked for.
func (f *finder) full(kind string) bool { return f.count[kind] > maxOfKind }

// add adds a finding at a place of the text.
func (f *finder) add(at int, kind, s string) {
	f.count[kind]++
	switch n := f.count[kind]; {
	case n <= maxOfKind:
		one := Finding{Line: f.line(at), Kind: kind}
		one.Text, one.Cut = brief(s)
		f.found = append(f.found, one)
	case n == maxOfKind+1:
		f.left[kind] = len(f.found)
		f.found = append(f.found, Finding{Line: f.line(at), Kind: kind, Cut: true})
	}
}

// line returns the line of a place.
func (f *finder) line(at int) int {
	return 1 + bytes.Count(f.source[:min(max(at, 0), len(f.source))], []byte("\n"))
}

// In returns the parts of a request that a page would not show: of its title, and of its body,
// which is Markdown, in the order of its lines. Of each kind only the first are listed, and
// then how many more there are. The same text is read once, as long as few others come between.
func In(title, body string) []Finding {
	return slices.Clone(known.of([2]string{title, body}, func() []Finding { return in(title, body) }))
}

// in is In for a text that is not known.
func in(title, body string) []Finding {
	f := finder{source: []byte(body), lower: lower(body), left: map[string]int{}, count: map[string]int{}}
	_ = ast.Walk(goldmark.DefaultParser().Parse(text.NewReader(f.thinned())), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			f.node(n)
		}
		return ast.WalkContinue, nil
	})
	at := 0
	for line := range strings.Lines(body) {
		if plain := strings.TrimRight(line, "\r\n"); hasInvisible(plain) {
			f.add(at, "invisible character", plain)
		}
		at += len(line)
	}
	for kind, i := range f.left {
		f.found[i].Text = fmt.Sprintf("and %d more", f.count[kind]-maxOfKind)
	}
	slices.SortStableFunc(f.found, func(a, b Finding) int { return a.Line - b.Line })
	if term.Visible(title) == title { // no page reads it as Markdown
		return f.found
	}
	one := Finding{Kind: "invisible character"}
	one.Text, one.Cut = brief(title)
	return append([]Finding{one}, f.found...)
}

// lower returns a text with the letters A to Z as small ones, and everything else at its place.
func lower(s string) []byte {
	out := []byte(s)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

// node adds the findings of one node of the text.
func (f *finder) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.HTMLBlock:
		f.html(n.Lines(), n.ClosureLine)
	case *ast.RawHTML:
		f.html(n.Segments, text.Segment{})
	case *ast.Image:
		f.alternative(n)
		f.link(n, n.Destination, n.Title)
	case *ast.Link:
		f.link(n, n.Destination, n.Title)
	case *ast.LinkReferenceDefinition:
		f.add(n.Lines().At(0).Start, "reference definition", string(n.Lines().Value(f.source)))
	case *ast.FencedCodeBlock:
		f.fence(n)
	case *ast.Paragraph, *ast.TextBlock:
		f.footnotes(n.Lines())
		f.cells(n.Lines())
		f.formulas(n)
	}
}

// fence adds the words behind the name of a language, and a block that a page shows as a picture.
func (f *finder) fence(n *ast.FencedCodeBlock) {
	if n.Info == nil {
		return
	}
	info := n.Info.Segment.Value(f.source)
	if !language.MatchString(string(bytes.TrimSpace(info))) {
		f.add(n.Info.Segment.Start, "code's first line", string(info))
	}
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(string(info))), " ")
	if kind := drawn[name]; kind != "" {
		f.add(n.Info.Segment.Start, kind, string(n.Lines().Value(f.source)))
	}
}

// footnotes adds the footnotes of a paragraph: pages show them at their end, if
// anything refers to them.
func (f *finder) footnotes(lines *text.Segments) {
	for _, line := range lines.Sliced(0, lines.Len()) {
		if s := string(line.Value(f.source)); footnote.MatchString(s) {
			f.add(line.Start, "footnote", s)
		}
	}
}

// alternative adds the text that stands for an image. Images stand in the texts
// of images, each in another one.
func (f *finder) alternative(n *ast.Image) {
	const kind = "alternative text"
	if f.full(kind) {
		if n.FirstChild() != nil {
			f.add(0, kind, "")
		}
		return
	}
	if alt := plainText(n, f.source); alt != "" {
		f.add(position(n), kind, alt)
	}
}

// link adds the title of a link or an image, and where it leads if nothing of it can be seen.
func (f *finder) link(n ast.Node, destination, title []byte) {
	const unseen, titled = "link without text", "link title"
	switch {
	case f.full(unseen):
		if n.FirstChild() == nil {
			f.add(0, unseen, "")
		}
	case !hasImage(n) && f.blank(n):
		f.add(position(n), unseen, string(destination))
	}
	switch {
	case len(title) == 0:
	case f.full(titled):
		f.add(0, titled, "")
	default:
		f.add(position(n), titled, string(title))
	}
}

// blank reports whether nothing of the text in a node can be seen.
func (f *finder) blank(n ast.Node) bool {
	seen := false
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		t, ok := c.(*ast.Text)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		s := spelled.ReplaceAllString(term.Visible(html.UnescapeString(string(t.Segment.Value(f.source)))), "")
		if seen = strings.TrimSpace(s) != ""; seen {
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return !seen
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

// hasInvisible reports whether a line holds a character that cannot be seen,
// itself or as an entity.
func hasInvisible(line string) bool {
	if term.Visible(line) != line {
		return true
	}
	return slices.ContainsFunc(entity.FindAllString(line, -1), func(s string) bool {
		r := html.UnescapeString(s)
		return term.Visible(r) != r
	})
}

// html adds comments, attributes that hold text, sections that are shown when a
// reader asks for them, and the HTML itself, unless it is one comment or one
// closing tag: styles can hide any of it.
func (f *finder) html(lines *text.Segments, closure text.Segment) {
	if lines.Len() == 0 && closure.IsEmpty() {
		return
	}
	start, stop := closure.Start, closure.Stop
	if lines.Len() > 0 {
		start, stop = lines.At(0).Start, max(lines.At(lines.Len()-1).Stop, closure.Stop)
	}
	source := string(f.source[start:stop])
	all, trimmed := false, strings.TrimSpace(source)
	for _, at := range htmlComment.FindAllStringIndex(source, -1) {
		f.add(start+at[0], "HTML comment", source[at[0]:at[1]])
		all = all || source[at[0]:at[1]] == trimmed
	}
	for _, at := range htmlAttribute.FindAllStringIndex(source, -1) {
		f.add(start+at[0], "HTML attribute", strings.TrimSpace(source[at[0]:at[1]]))
	}
	f.sections(start, stop)
	if !all && !htmlEnd.MatchString(source) {
		f.add(start, "HTML", source)
	}
}

// sections adds the collapsed sections that begin between two places, each with
// all that stands in it: that is Markdown, and may go on far behind the HTML
// that begins it. One without an end goes on to the end of the text.
func (f *finder) sections(start, stop int) {
	for at := start; at < stop; {
		i := bytes.Index(f.lower[at:stop], []byte("<details"))
		if i < 0 {
			return
		}
		begin := at + i
		at = begin + len("<details")
		if f.count[collapsed] >= maxOfKind { // its text is not listed
			f.add(begin, collapsed, "")
			continue
		}
		end := len(f.source)
		if i := bytes.Index(f.lower[at:], []byte("</details")); i >= 0 {
			end = at + i
		}
		f.add(begin, collapsed, string(f.source[begin:end]))
	}
}

// brief returns a text on one line in which every character can be seen, and whether it is
// cut. What is left out of a long one is its middle: both ends are where a reader looks.
func brief(s string) (text string, cut bool) {
	r := []rune(strings.Join(strings.Fields(term.Visible(s)), " "))
	if len(r) <= shownText {
		return string(r), false
	}
	const end = shownText / 2
	return fmt.Sprintf("%s … [%d characters] … %s", string(r[:end]), len(r)-2*end, string(r[len(r)-end:])), true
}

// position returns where an inline node stands: where its first text does, or
// else the block that holds it.
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
