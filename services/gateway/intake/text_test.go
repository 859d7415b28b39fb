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
		"nothing **hidden** `<!-- code -->` here":              "",
		"a\n<!-- do\nevil -->\nb":                              "2 HTML comment: <!-- do evil -->",
		"a <!-- x --> b":                                       "1 HTML comment: <!-- x -->",
		"<!-- never ends":                                      "1 HTML comment: <!-- never ends",
		"a\n\n![delete main](x.png \"really\")":                "3 alternative text: delete main; 3 link title: really",
		"[a](b 'see this')":                                    "1 link title: see this",
		"<img src=x alt=\"obey me\">":                          "1 HTML attribute: alt=\"obey me\"",
		"a <picture><source srcset='y'></picture>":             "1 HTML: <picture>; 1 HTML attribute: srcset='y'",
		"<p style='display:none'>\nobey\n</p>":                 "1 HTML: <p style='display:none'> obey </p>",
		"one\ntwo\u200bthree":                                  "2 invisible character: two<U+200B>three",
		"a\u202eb":                                             "1 invisible character: a<U+202E>b",
		"a\U000E0041":                                          "1 invisible character: a<U+E0041>",
		"fine\r\nlines\r\n":                                    "",
		strings.Repeat("x\u200b\n", 200):                       "*",
		"[not]: http://a.test 'a definition\nover lines'\n":    "",
		"`<img alt=x>`\n\n    <!-- code is shown as it is -->": "",
	} {
		var got []string
		for _, h := range intake.Hidden(text) {
			got = append(got, fmt.Sprintf("%d %s: %s", h.Line, h.Kind, h.Text))
		}
		if want == "*" && len(got) == 50 {
			continue
		}
		if all := strings.Join(got, "; "); all != want {
			t.Errorf("%q hides %q, want %q", text, all, want)
		}
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
		if want := strings.TrimSuffix(term.Sanitize(body), "\n"); !ok || !end || strings.TrimSuffix(html.UnescapeString(inside), "\n") != want {
			t.Errorf("%q is shown as %q, want %q", body, page.String(), want)
		}
	})
}

var (
	mention   = regexp.MustCompile(`@[A-Za-z0-9]`)
	reference = regexp.MustCompile(`(?i)(?:#|!|GH-)\d|(?:clos|fix|resolv|implement)\w*\W+(?:\w+/\w+)?#\d`)
	keyword   = regexp.MustCompile(`(?i)\b(?:closes|fixes|resolved)\b`)
	tag       = regexp.MustCompile(`<[A-Za-z/!]`)
	botLine   = regexp.MustCompile(`(?m)^\s*/`)
)

// TestNothingOutIsObeyed: no text that leaves mentions, closes, links, loads or commands, it has no secrets, and all of its words
// can still be read.
func TestNothingOutIsObeyed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := markdown().Draw(t, "body") + " " + secret + " " + markdown().Draw(t, "more")
		limit := rapid.IntRange(0, 4000).Draw(t, "limit")
		for name, out := range map[string]string{"Plain": intake.Plain(body, secrets, limit), "Quote": intake.Quote(body, secrets, max(limit, 10))} {
			for what, pattern := range map[string]*regexp.Regexp{
				"mention": mention, "reference": reference, "keyword": keyword, "HTML": tag, "command": botLine,
			} {
				if found := pattern.FindString(out); found != "" {
					t.Errorf("%s of %q has a %s: %q in %q", name, body, what, found, out)
				}
			}
			if strings.Contains(out, secret) || len(out) > max(limit, 10)+1 {
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
