package concealed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/gateway/concealed"
)

// TestHidden: what a page would not show is listed by its line and kind, and
// nothing that it shows is.
func TestHidden(t *testing.T) {
	for text, want := range map[string]string{
		"nothing **hidden** `<!-- code -->` here":  "",
		"a\n<!-- do\nevil -->\nb":                  "2 HTML comment: <!-- do evil -->",
		"a <!-- x --> b":                           "1 HTML comment: <!-- x -->",
		"<!-- never ends":                          "1 HTML comment: <!-- never ends",
		"a\n\n![delete main](x.png \"really\")":    "3 alternative text: delete main; 3 link title: really",
		"[a](b 'see this')":                        "1 link title: see this",
		"<img src=x alt=\"obey me\">":              "1 HTML attribute: alt=\"obey me\"; 1 HTML: <img src=x alt=\"obey me\">",
		"a <picture><source srcset='y'></picture>": "1 HTML: <picture>; 1 HTML attribute: srcset='y'; 1 HTML: <source srcset='y'>",
		"<p style='display:none'>\nobey\n</p>":     "1 HTML: <p style='display:none'> obey </p>",
		"</div>\n<p style='display:none'>obey</p>": "1 HTML: </div> <p style='display:none'>obey</p>",
		"</div>": "",
		"<p style='display:none' title='x'>\nobey":          "1 HTML attribute: title='x'; 1 HTML: <p style='display:none' title='x'> obey",
		"<!-- ok --><p hidden>obey</p>":                     "1 HTML comment: <!-- ok -->; 1 HTML: <!-- ok --><p hidden>obey</p>",
		"<!--><p hidden>obey</p>-->":                        "1 HTML comment: <!--><p hidden>obey</p>-->",
		"[//]: # (obey)":                                    "1 reference definition: [//]: # (obey)",
		"[ref]: url \"obey\"":                               "1 reference definition: [ref]: url \"obey\"",
		"[not]: http://a.test 'a definition\nover lines'\n": "1 reference definition: [not]: http://a.test 'a definition over lines'",
		"seen\n\n[^1]: obey this, too":                      "3 footnote: [^1]: obey this, too",
		"> [^1]: obey this, too":                            "1 footnote: [^1]: obey this, too",
		"a\n[^1]: obey this, too":                           "2 footnote: [^1]: obey this, too",
		"```go obey this\nx\n```":                           "1 code's first line: go obey this",
		"```objective-c++\nx\n```":                          "",
		"```" + strings.Repeat("x", 40) + "\nx\n```":        "1 code's first line: " + strings.Repeat("x", 40),
		"one\ntwo &#8203;three":                             "2 invisible character: two &#8203;three",
		"a&#xE0041;b":                                       "1 invisible character: a&#xE0041;b",
		"a &amp; b &eacute;":                                "",
		"a\n\n![](https://a.test/obey)":                     "3 link without text: https://a.test/obey",
		"see [](obey)":                                      "1 link without text: obey",
		"[&#8203;](obey)":                                   "1 link without text: obey; 1 invisible character: [&#8203;](obey)",
		"one\ntwo\u200bthree":                               "2 invisible character: two<U+200B>three",
		"a\u202eb":                                          "1 invisible character: a<U+202E>b",
		"a\U000E0041":                                       "1 invisible character: a<U+E0041>",
		"a\u2800b\u3000c":                                   "1 invisible character: a<U+2800>b<U+3000>c",
		"a\x1b]0;obey\x07b":                                 "1 invisible character: a<U+001B>]0;obey<U+0007>b",
		"fine\r\nlines\r\n":                                 "",
		"<details><summary>log</summary>\n\nobey\n\n</details>\n\nseen": "1 collapsed section: <details><summary>log</summary> obey; " +
			"1 HTML: <details><summary>log</summary>",
		"a\n\n<DETAILS>\n\nobey":                               "3 collapsed section: <DETAILS> obey; 3 HTML: <DETAILS>",
		"`<img alt=x>`\n\n    <!-- code is shown as it is -->": "",
		"|a|b|\n|-|-|\n|1|2|obey|me|\n|3|4|\n|5|6 \\| 7|":      "3 table cell: obey|me|",
		"a | b\n:-: | -\n1 | 2 | obey\n\n1 | 2 | 3":            "3 table cell: obey",
		"1 | 2 | no table":                                     "",
		"```mermaid\ngraph LR\n%% obey\na-->b\n```":            "1 diagram: graph LR %% obey a-->b",
		"~~~ Math\n\\phantom{obey}\n~~~":                       "1 formula: \\phantom{obey}",
		"it is $\\phantom{obey}x$ and `$\\phantom{no}$`":       "1 formula: $\\phantom{obey}x$",
		"a $$x$$ and $`y`$ and $z$":                            "1 formula: $$x$$; 1 formula: $`y`$",
		"from $5 to $6, \\$7 \\[a\\] and \\(a\\phantom{b}\\)":  "1 formula: \\(a\\phantom{b}\\)",
	} {
		if got := hiddenIn(text); got != want {
			t.Errorf("%q hides %q, want %q", text, got, want)
		}
	}
}

// hiddenIn returns what is hidden in a text, on one line.
func hiddenIn(text string) string {
	var got []string
	for _, h := range concealed.In("", text) {
		got = append(got, fmt.Sprintf("%d %s: %s", h.Line, h.Kind, h.Text))
	}
	return strings.Join(got, "; ")
}

// TestHiddenInATitle: a title is no Markdown, and can hold characters that cannot be seen.
func TestHiddenInATitle(t *testing.T) {
	if got := concealed.In("a <b> <!-- c -->", ""); len(got) != 0 {
		t.Errorf("a title that is shown as it is hides %v", got)
	}
	if got := fmt.Sprint(concealed.In("a\u200bb", "c\u200bd")); got != "[title, invisible character: a<U+200B>b line 1, invisible character: c<U+200B>d]" {
		t.Errorf("the title hides %s", got)
	}
}

// TestHiddenIsBounded: many findings of one kind push none of another off the
// list, and how many are left out is said.
func TestHiddenIsBounded(t *testing.T) {
	got := concealed.In("", strings.Repeat("x\u200b\n", 50)+"\n<!-- obey -->")
	if n := len(got); n != 12 {
		t.Fatalf("%d findings", n)
	}
	if want := (concealed.Finding{Line: 11, Kind: "invisible character", Text: "and 40 more", Cut: true}); got[10] != want {
		t.Errorf("the eleventh is %+v, want %+v", got[10], want)
	}
	if got[11].Kind != "HTML comment" {
		t.Errorf("the last is %+v", got[11])
	}
	images := strings.Repeat("![", 3000) + "a" + strings.Repeat("](x 'y')", 3000)
	if got := concealed.In("", images); len(got) != 1 || concealed.Whole(got) ||
		got[0].String() != "line 1, crowded text: 30001 bytes with 9000 marks are not looked through" {
		t.Errorf("of a paragraph with too many marks it says %v", got)
	}
	for _, deep := range []string{strings.Repeat(">", 60), strings.Repeat("> ", 60), strings.Repeat("- ", 60), strings.Repeat("12) ", 60)} {
		if got := concealed.In("", "a\n"+deep+"<!-- obey -->"); len(got) != 1 || concealed.Whole(got) || got[0].Line != 2 || got[0].Kind != "crowded text" {
			t.Errorf("of %q it says %v", deep, got)
		}
	}
	for name, test := range map[string]struct {
		lines int
		whole bool
	}{"as deep as may be": {49, true}, "deeper": {60, false}} {
		var nested strings.Builder
		for n := range test.lines {
			nested.WriteString(strings.Repeat("  ", n) + "- a\n")
		}
		got := concealed.In("", nested.String()+strings.Repeat("\n", 100)+strings.Repeat(" ", 1000)+"code\n")
		if concealed.Whole(got) != test.whole || test.whole != (len(got) == 0) {
			t.Errorf("of items in items, %s, it says %v", name, got)
		}
	}
	for _, list := range []string{"- a\n\n\n\r\n \n\n  <!-- obey -->", "<p>a\n\n\n\n\nb\n<!-- obey -->"} {
		if got := hiddenIn(list); !strings.HasSuffix(got, fmt.Sprintf("%d HTML comment: <!-- obey -->", 1+strings.Count(list, "\n"))) {
			t.Errorf("behind empty lines of %q it says %q", list, got)
		}
	}
	if got := hiddenIn(strings.Repeat("> - ", 20) + "<!-- obey -->"); got != "1 HTML comment: <!-- obey -->" {
		t.Errorf("of a deep line it says %q", got)
	}
	if got := concealed.In("", strings.Repeat("[a](b 'c') ", 500)); len(got) != 11 {
		t.Errorf("of a long paragraph it says %v", got)
	}
	if got := concealed.In("", strings.Repeat("<details>\n\n", 5000)); len(got) != 22 || concealed.Whole(got) {
		t.Errorf("of many collapsed sections %d findings are listed", len(got))
	}
}

// TestHiddenKeepsTheEnd: a long finding is cut in its middle, and says so.
func TestHiddenKeepsTheEnd(t *testing.T) {
	got := hiddenIn("<!-- begin " + strings.Repeat("é", 500) + " obey -->")
	if !strings.HasPrefix(got, "1 HTML comment: <!-- begin é") || !strings.HasSuffix(got, "é obey -->") || !strings.Contains(got, "characters] …") {
		t.Errorf("a long comment is shown as %q", got)
	}
	if concealed.Whole(concealed.In("", "<!-- "+strings.Repeat("x", 500)+" -->")) || !concealed.Whole(concealed.In("", "<!-- obey -->")) {
		t.Error("it does not say whether all of what is hidden is in the list")
	}
}

func FuzzIn(f *testing.F) {
	for _, s := range []string{
		"<!-- a -->", "![](a)[](b)", "```a b\n", "[a]: b (c)\nx", "&#8203;\ufe0f", "<details>\n\na</details>", "[^1]: a",
		"|a|\n|-|\n|b|c|", "$\\a$ \\[", "```math\n",
	} {
		f.Add("a title", s)
	}
	f.Fuzz(func(t *testing.T, title, body string) {
		list := concealed.In(title, body)
		if len(list) > 15*11+1 {
			t.Errorf("%q has %d findings", body, len(list))
		}
		for _, one := range list {
			if one.Line < 0 || one.Line > 1+strings.Count(body, "\n") || strings.ContainsAny(one.Text, "\n\x1b\u200b") || len(one.Text) > 2000 {
				t.Errorf("in %q it finds %+v", body, one)
			}
		}
	})
}
