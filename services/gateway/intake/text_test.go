package intake_test

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// secret is a value that must not leave.
const secret = "correct-horse-battery"

var secrets = redact.New(secret)

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
		"<p style='display:none' title='x'>\nobey":             "1 HTML attribute: title='x'; 1 HTML: <p style='display:none' title='x'> obey",
		"<!-- ok --><p hidden>obey</p>":                        "1 HTML comment: <!-- ok -->; 1 HTML: <!-- ok --><p hidden>obey</p>",
		"<!--><p hidden>obey</p>-->":                           "1 HTML comment: <!--><p hidden>obey</p>-->",
		"[//]: # (obey)":                                       "1 reference definition: [//]: # (obey)",
		"[ref]: url \"obey\"":                                  "1 reference definition: [ref]: url \"obey\"",
		"[not]: http://a.test 'a definition\nover lines'\n":    "1 reference definition: [not]: http://a.test 'a definition over lines'",
		"seen\n\n[^1]: obey this, too":                         "3 footnote: [^1]: obey this, too",
		"> [^1]: obey this, too":                               "1 footnote: [^1]: obey this, too",
		"a\n[^1]: obey this, too":                              "2 footnote: [^1]: obey this, too",
		"```go obey this\nx\n```":                              "1 code's first line: go obey this",
		"```objective-c++\nx\n```":                             "",
		"```" + strings.Repeat("x", 40) + "\nx\n```":           "1 code's first line: " + strings.Repeat("x", 40),
		"one\ntwo &#8203;three":                                "2 invisible character: two &#8203;three",
		"a&#xE0041;b":                                          "1 invisible character: a&#xE0041;b",
		"a &amp; b &eacute;":                                   "",
		"a\n\n![](https://a.test/obey)":                        "3 link without text: https://a.test/obey",
		"see [](obey)":                                         "1 link without text: obey",
		"[&#8203;](obey)":                                      "1 link without text: obey; 1 invisible character: [&#8203;](obey)",
		"one\ntwo\u200bthree":                                  "2 invisible character: two<U+200B>three",
		"a\u202eb":                                             "1 invisible character: a<U+202E>b",
		"a\U000E0041":                                          "1 invisible character: a<U+E0041>",
		"a\u2800b\u3000c":                                      "1 invisible character: a<U+2800>b<U+3000>c",
		"a\x1b]0;obey\x07b":                                    "1 invisible character: a<U+001B>]0;obey<U+0007>b",
		"fine\r\nlines\r\n":                                    "",
		"`<img alt=x>`\n\n    <!-- code is shown as it is -->": "",
	} {
		if got := hiddenIn(text); got != want {
			t.Errorf("%q hides %q, want %q", text, got, want)
		}
	}
}

// hiddenIn returns what is hidden in a text, on one line.
func hiddenIn(text string) string {
	var got []string
	for _, h := range intake.Hidden(text) {
		got = append(got, fmt.Sprintf("%d %s: %s", h.Line, h.Kind, h.Text))
	}
	return strings.Join(got, "; ")
}

// TestHiddenIsBounded: many findings of one kind push none of another off the list, and how many are left out is said.
func TestHiddenIsBounded(t *testing.T) {
	got := intake.Hidden(strings.Repeat("x\u200b\n", 50) + "\n<!-- obey -->")
	if n := len(got); n != 12 {
		t.Fatalf("%d findings", n)
	}
	if want := (intake.Concealed{Line: 11, Kind: "invisible character", Text: "and 40 more"}); got[10] != want {
		t.Errorf("the eleventh is %+v, want %+v", got[10], want)
	}
	if got[11].Kind != "HTML comment" {
		t.Errorf("the last is %+v", got[11])
	}
}

// TestHiddenKeepsTheEnd: a long finding is cut in its middle, and says so.
func TestHiddenKeepsTheEnd(t *testing.T) {
	got := hiddenIn("<!-- begin " + strings.Repeat("é", 500) + " obey -->")
	if !strings.HasPrefix(got, "1 HTML comment: <!-- begin é") || !strings.HasSuffix(got, "é obey -->") || !strings.Contains(got, "characters] …") {
		t.Errorf("a long comment is shown as %q", got)
	}
}

// TestShownIsAllOfIt: what an approver is shown has every character of the text, as text.
func TestShownIsAllOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := markdown().Draw(t, "body")
		var page bytes.Buffer
		if err := goldmark.Convert([]byte(intake.Shown(body)), &page); err != nil {
			t.Fatal(err)
		}
		inside, ok := strings.CutPrefix(page.String(), `<pre><code class="language-text">`)
		inside, end := strings.CutSuffix(inside, "</code></pre>\n")
		if want := strings.TrimSuffix(term.Visible(body), "\n"); !ok || !end || strings.TrimSuffix(html.UnescapeString(inside), "\n") != want {
			t.Errorf("%q is shown as %q, want %q", body, page.String(), want)
		}
	})
}

// seen returns what a reader of outgoing text sees: without what is invisible, or spelled out because it is.
func seen(out string) string {
	return regexp.MustCompile(`[\x{200b}\x{fe0f}\x{a0}\x{2800}]|&lt;U\+[0-9A-F]+&gt;`).ReplaceAllString(out, "")
}

var (
	mention   = regexp.MustCompile(`@[A-Za-z0-9]`)
	reference = regexp.MustCompile(`(?i)(?:#|!|[a-z]-|\[\w+:)\d|[0-9a-f]{7}|(?:clos|fix|resolv|implement)\w*\W+(?:\w+/\w+)?#\d`)
	keyword   = regexp.MustCompile(`(?i)\b(?:closes|fixes|resolved)\b`)
	tag       = regexp.MustCompile(`<[A-Za-z/!]`)
	// botLine finds a line that does not begin with the mark that no bot expects.
	botLine = regexp.MustCompile("(?m)^(?:> )?[^>\u200b\n]")
)

// TestNothingOutIsObeyed: no text that leaves mentions, closes, links, loads or commands, it has no secrets, and all of its words
// can still be read.
func TestNothingOutIsObeyed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		split := rapid.SampledFrom([]string{"", "\x1b[31m", "\x1b]0;x\x07", "\x00", "\u200b", "\u00ad", "\ufe0f", "\u00a0", "\u2800", "\U000E0041"})
		body := markdown().Draw(t, "body") + " correct-" + split.Draw(t, "first") + "horse-" + split.Draw(t, "second") + "battery " +
			markdown().Draw(t, "more")
		limit := rapid.IntRange(0, 4000).Draw(t, "limit")
		for name, out := range map[string]string{"Plain": intake.Plain(body, secrets, limit), "Quote": intake.Quote(body, secrets, max(limit, 10))} {
			for what, pattern := range map[string]*regexp.Regexp{
				"mention": mention, "reference": reference, "keyword": keyword, "HTML": tag, "command": botLine,
			} {
				if found := pattern.FindString(out); found != "" {
					t.Errorf("%s of %q has a %s: %q in %q", name, body, what, found, out)
				}
			}
			if strings.Contains(seen(out), secret) || len(out) > max(limit, 10)+1 {
				t.Errorf("%s of %q in %d bytes is %q", name, body, limit, out)
			}
		}
	})
}

// TestPlainKeepsTheWords: what the page shows is the text, without anything but text in it.
func TestPlainKeepsTheWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := markdown().Draw(t, "body")
		var page bytes.Buffer
		if err := goldmark.Convert([]byte(intake.Plain(body, innocent(), 1<<20)), &page); err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(`</?(?:[^p/]|p[a-z])[^>]*>`).FindString(page.String()); found != "" {
			t.Errorf("%q is shown with %q: %q", body, found, page.String())
		}
		shown := regexp.MustCompile(`</?p>`).ReplaceAllString(page.String(), " ")
		if got, want := words(html.UnescapeString(shown)), words(term.Sanitize(body)); got != want {
			t.Errorf("%q is shown as %q, want %q", body, got, want)
		}
	})
}

// innocent returns a redactor that knows no secret.
func innocent() *redact.Redactor { return redact.New() }

// words returns a text without white space and the marks that break words.
func words(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\u200b", "")), "")
}

func FuzzPlain(f *testing.F) {
	f.Add("Closes #1 @ada /forge run", 100)
	f.Add("![a](b)\n<b>", 3)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = min(max(limit, 0), intake.MaxOut)
		for _, out := range []string{intake.Plain(s, secrets, limit), intake.Quote(s, secrets, max(limit, 10))} {
			if len(out) > max(limit, 10)+1 || mention.MatchString(out) || tag.MatchString(out) || botLine.MatchString(out) {
				t.Errorf("%q became %q", s, out)
			}
		}
	})
}

func TestHash(t *testing.T) {
	if intake.Hash("a", "bc") == intake.Hash("ab", "c") || len(intake.Hash("", "")) != 64 {
		t.Error("the hash does not tell title and body apart")
	}
}
