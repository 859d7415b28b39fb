package concealed

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// drawn has the kind of each language whose code some forge shows as something else than
// text: a comment in it, or what has the colour of the page, is in no picture of it.
var drawn = map[string]string{
	"mermaid": "diagram", "plantuml": "diagram", "geojson": "diagram", "topojson": "diagram", "stl": "diagram", "json:table": "diagram", "math": formula,
}

var (
	// tableRule matches the row below the head of a table.
	tableRule = pattern.New(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\r?\n?$`)
	// formulaText matches a text that some forge may show as a formula.
	formulaText = pattern.New("(?s)\\$\\$.+?\\$\\$|\\$`[^`]+`\\$|\\$[^\\s$](?:[^$\\n]*[^\\s$\\\\])?\\$|\\\\\\[.+?\\\\\\]|\\\\\\(.+?\\\\\\)")
)

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
	for _, at := range formulaText.FindAllStringIndex(string(shown), -1) {
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

// blankOut replaces all of a text by blanks.
func blankOut(s []byte) {
	for i := range s {
		s[i] = ' '
	}
}
