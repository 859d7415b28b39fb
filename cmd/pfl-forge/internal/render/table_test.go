package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

func TestColumns(t *testing.T) {
	c := Columns{Header: []string{"ID", "TITLE", "AGE"}, Shrink: 1}
	c.Add("one", "A title that is long enough to be cut", "1s")
	c.Add("two-and-more", "日本語の題名はとても広いので切られます", "12m")
	c.Add("bad", "a\x1b[31m\nb", "")

	var piped bytes.Buffer
	if err := c.Write(&piped, 0, Style{Colour: true}); err != nil {
		t.Fatal(err)
	}
	want := "ID\tTITLE\tAGE\none\tA title that is long enough to be cut\t1s\n" +
		"two-and-more\t日本語の題名はとても広いので切られます\t12m\nbad\ta b\t-\n"
	if piped.String() != want {
		t.Errorf("piped:\n%q, want\n%q", piped.String(), want)
	}

	var shown bytes.Buffer
	if err := c.Write(&shown, 40, Style{}); err != nil {
		t.Fatal(err)
	}
	column := -1
	for line := range strings.Lines(shown.String()) {
		line = strings.TrimRight(line, "\n")
		if w := runewidth.StringWidth(line); w > 40 {
			t.Errorf("%q is %d cells wide", line, w)
		}
		at := runewidth.StringWidth(line[:strings.LastIndex(line, " ")])
		if column >= 0 && at != column {
			t.Errorf("%q: the last column begins at %d, not %d", line, at, column)
		}
		column = at
	}
	if !strings.Contains(shown.String(), "…") {
		t.Errorf("nothing was cut:\n%s", shown.String())
	}
}

func TestFormat(t *testing.T) {
	var f Format
	if err := f.Set("xml"); err == nil || !strings.Contains(err.Error(), "yaml") {
		t.Errorf("Set(xml) = %v, want the formats that there are", err)
	}
	value := struct {
		Text string `json:"text" yaml:"text"`
	}{"a & <b>"}
	for format, want := range map[Format]string{JSON: "{\n  \"text\": \"a & <b>\"\n}\n", YAML: "text: a & <b>\n"} {
		if err := f.Set(string(format)); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := f.Write(&out, value); err != nil || out.String() != want || !f.Data() {
			t.Errorf("%s: %q, %v, want %q", format, out.String(), err, want)
		}
	}
}
