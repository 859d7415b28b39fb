package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// minColumn is the least width that a column may shrink to, in cells.
const minColumn = 12

// Columns prints rows under a header. On a terminal of a known width the last
// column, or the one named by Shrink, is cut to fit; elsewhere nothing is cut and
// columns are separated by tabs.
type Columns struct {
	Header []string
	Shrink int // index of the column that gives way
	Also   int // index of another one that gives way as well, as long as it is the wider one; 0 if none does
	rows   [][]string
}

// Add adds a row. Its texts are made safe and put on one line each.
func (c *Columns) Add(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if row[i] = term.Line(cell); row[i] == "" {
			row[i] = "-"
		}
	}
	c.rows = append(c.rows, row)
}

// Write prints the table. A width of 0 means that this is no terminal.
func (c *Columns) Write(w io.Writer, width int, style Style) error {
	if width == 0 {
		for _, row := range append([][]string{c.Header}, c.rows...) {
			if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
				return err
			}
		}
		return nil
	}
	widths := c.widths(width)
	if _, err := fmt.Fprintln(w, style.Faint(line(c.Header, widths))); err != nil {
		return err
	}
	for _, row := range c.rows {
		if _, err := fmt.Fprintln(w, line(row, widths)); err != nil {
			return err
		}
	}
	return nil
}

// widths returns how wide each column is, in cells.
func (c *Columns) widths(most int) []int {
	widths := make([]int, len(c.Header))
	total := 2 * (len(widths) - 1)
	for i := range widths {
		widths[i] = runewidth.StringWidth(c.Header[i])
		for _, row := range c.rows {
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
		total += widths[i]
	}
	for over := total - most; over > 0; over-- {
		i := c.Shrink
		if c.Also > 0 && widths[c.Also] >= widths[i] {
			i = c.Also
		}
		if widths[i] <= minColumn {
			break
		}
		widths[i]--
	}
	return widths
}

// line returns a row with its cells filled to the widths of their columns.
func line(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		if runewidth.StringWidth(cell) > widths[i] {
			cell = runewidth.Truncate(cell, widths[i], "…")
		}
		if i == len(cells)-1 {
			b.WriteString(cell)
			break
		}
		b.WriteString(runewidth.FillRight(cell, widths[i]))
		b.WriteString("  ")
	}
	return strings.TrimRight(b.String(), " ")
}

// Cut returns a text that is at most width cells wide.
func Cut(s string, width int) string {
	if runewidth.StringWidth(s) <= width {
		return s
	}
	return runewidth.Truncate(s, max(width, 1), "…")
}
