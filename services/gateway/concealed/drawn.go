package concealed

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// drawn has the kind of each language whose code some forge shows as something else than
// text: a comment in it, or what has the colour of the page, is in no picture of it.
var drawn = map[string]string{
	"mermaid": "diagram", "plantuml": "diagram", "geojson": "diagram", "topojson": "diagram", "stl": "diagram", "json:table": "diagram", "math": formula,
}

// tableRule matches the row below the head of a table.
var tableRule = pattern.New(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\r?\n?$`)

// cells adds the cells of tables in a paragraph that are more than the head of
// their table has: a page leaves them out.
func (f *finder) cells(lines *text.Segments) {
	columns := 0
	var before []int
	for _, line := range lines.Sliced(0, lines.Len()) {
		row := line.Value(f.source)
		starts := cellsOf(row)
		switch {
		case len(before) == len(starts) && bytes.IndexByte(row, '|') >= 0 && tableRule.MatchString(string(row)):
			columns = len(starts)
		case columns > 0 && len(starts) > columns:
			f.add(line.Start+starts[columns], "table cell", string(row[starts[columns]:]))
		}
		before = starts
	}
}

// cellsOf returns where the cells of a row begin.
func cellsOf(row []byte) (starts []int) {
	row = bytes.TrimRight(row, " \t\r\n")
	begin := len(row) - len(bytes.TrimLeft(row, " \t"))
	if begin < len(row) && row[begin] == '|' {
		begin++
	}
	starts = append(starts, begin)
	for i := begin; i < len(row); i++ {
		switch row[i] {
		case '\\':
			i++ // it is the text of a cell, whatever it is
		case '|':
			starts = append(starts, i+1)
		}
	}
	if n := len(starts); n > 1 && starts[n-1] == len(row) { // the last one ends the row
		starts = starts[:n-1]
	}
	return starts
}

// formulas adds the formulas of a paragraph that can hide something: those with
// a command or a comment in them, and all that stand for themselves.
func (f *finder) formulas(n ast.Node) {
	lines := n.Lines()
	if lines.Len() == 0 {
		return
	}
	start, stop := lines.At(0).Start, lines.At(lines.Len()-1).Stop
	source := f.source[start:stop]
	if bytes.IndexByte(source, '$') < 0 && bytes.IndexByte(source, '\\') < 0 {
		return
	}
	shown := bytes.Clone(source)
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		if c.Kind() == ast.KindCodeSpan && entering {
			for t := c.FirstChild(); t != nil; t = t.NextSibling() {
				if t, ok := t.(*ast.Text); ok {
					blankOut(shown[t.Segment.Start-start : t.Segment.Stop-start])
				}
			}
		}
		return ast.WalkContinue, nil
	})
	for _, at := range formulasIn(shown) {
		found := source[at[0]:at[1]]
		inside := found[1 : len(found)-1]
		if found[0] == '\\' {
			inside = found[2 : len(found)-2]
		}
		if bytes.HasPrefix(found, []byte("$$")) || bytes.HasPrefix(found, []byte("$`")) || bytes.ContainsAny(inside, `\%`) {
			f.add(start+at[0], formula, string(found))
		}
	}
}

// formulasIn returns where the texts begin and end that some forge may show as
// formulas, in their order. No part of a text is looked through for an end
// twice, however many beginnings without one there are.
func formulasIn(s []byte) (found [][2]int) {
	lacking := map[string]bool{} // the ends of which there are no more
	for i := 0; i < len(s); {
		end := -1
		for _, open := range []string{"$$", `\[`, `\(`} {
			if bytes.HasPrefix(s[i:], []byte(open)) {
				end = endOf(s, i, closing[open], lacking)
			}
		}
		if end < 0 && s[i] == '$' {
			end = endOfLine(s, i)
		}
		if end < 0 {
			i++
			continue
		}
		found = append(found, [2]int{i, end})
		i = end
	}
	return found
}

// closing has the end of each formula that may go over several lines, by its beginning.
var closing = map[string]string{"$$": "$$", `\[`: `\]`, `\(`: `\)`}

// endOf returns where a formula ends that may go over several lines and has
// something in it; -1 if it does not. What is not there is noted.
func endOf(s []byte, begin int, end string, lacking map[string]bool) int {
	first := begin + len(end) + 1
	if lacking[end] || first > len(s) {
		return -1
	}
	n := bytes.Index(s[first:], []byte(end))
	if lacking[end] = n < 0; n < 0 {
		return -1
	}
	return first + n + len(end)
}

// endOfLine returns where a formula of one dollar ends, with code in it or
// words of one line; -1 if it does not.
func endOfLine(s []byte, begin int) int {
	const blank = " \t\n\f\r"
	rest := s[begin+1:]
	if len(rest) > 0 && rest[0] == '`' {
		if n := bytes.IndexByte(rest[1:], '`'); n > 0 && n+2 < len(rest) && rest[n+2] == '$' {
			return begin + n + 4
		}
	}
	n := bytes.IndexAny(rest, "$\n")
	switch {
	case n < 1 || rest[n] != '$' || strings.IndexByte(blank, rest[0]) >= 0:
		return -1
	case n > 1 && strings.IndexByte(blank+"\\", rest[n-1]) >= 0:
		return -1
	}
	return begin + n + 2
}

// blankOut replaces all of a text by blanks.
func blankOut(s []byte) {
	for i := range s {
		s[i] = ' '
	}
}
