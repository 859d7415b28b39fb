package intake_test

import (
	"bytes"
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

// seen returns what a reader of outgoing text sees: without what is invisible,
// or spelled out because it is.
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

// TestNothingOutIsObeyed: no text that leaves mentions, closes, links, loads or
// commands, it has no secrets, and all of its words can still be read.
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
