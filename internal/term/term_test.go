package term

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSanitize(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                 "plain\ttext\n",
		"grün 日本 🙂":                     "grün 日本 🙂",
		"\x1b[31mred\x1b[0m":            "red",
		"\x1b[2J\x1b[1;1Hhome":          "home",
		"a\x1b]0;title\x07b":            "ab",
		"a\x1b]52;c;ZXZpbA==\x1b\\b":    "ab",
		"a\u009b31mb\u009d0;x\u009cc":   "abc",
		"a\x1bPdevice\x1b\\b":           "ab",
		"a\x1b(Bb\x1bcd":                "abd",
		"one\r\ntwo\rthree":             "one\ntwo\nthree",
		"a\u2028b\u2029c\u0085d":        "a\nb\nc\nd",
		"bell\a nul\x00 del\x7f bs\b":   "bell nul del bs",
		"if\u202e evil\u2066":           "if<U+202E> evil<U+2066>",
		"zero\u200bwidth\ufeff":         "zero<U+200B>width<U+FEFF>",
		"tag\U000e0041":                 "tag<U+E0041>",
		"bad\xff\xfe":                   "bad\ufffd\ufffd",
		"\x1b]8;;never ends\nnext line": "8;;never ends\nnext line",
		"\x1b":                          "",
		"\x1b[":                         "",
		"\x1b[1\nx":                     "\nx",
	} {
		if got := Sanitize(in); got != want {
			t.Errorf("Sanitize(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	if got, want := Short("a\n  b\x1b[1m c", 80), "a b c"; got != want {
		t.Errorf("Short = %q, want %q", got, want)
	}
	if got, want := Short("日本語日本語", 4), "日本語…"; got != want {
		t.Errorf("Short = %q, want %q", got, want)
	}
}

func FuzzSanitize(f *testing.F) {
	for _, s := range []string{"\x1b[31m", "\x1b]0;x\x07", "\u009b", "\r\r\n", "\x1b\x1b[\x1b]", "\xc2\x1b[m", "e\u0301"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Sanitize(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if r != '\n' && r != '\t' && (isControl(r) || isDeceptive(r)) {
				t.Fatalf("%q kept %U", got, r)
			}
		}
		if again := Sanitize(got); again != got {
			t.Fatalf("not stable: %q, then %q", got, again)
		}
		if seen := Visible(s); Visible(seen) != seen || Sanitize(seen) != seen {
			t.Fatalf("%q is not safe to show", seen)
		}
		if line := Line(s); strings.ContainsAny(line, "\n\t") {
			t.Fatalf("%q is not one line", line)
		}
	})
}
