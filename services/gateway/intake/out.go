package intake

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// MaxOut bounds a text for a forge, in bytes. Forges refuse comments of more than 64 KiB.
const MaxOut = 60 << 10

// breaker stands inside of what a bot would obey. It cannot be seen, and no name or number holds it.
const breaker = "\u200b"

// closing finds words that make a forge close an issue when they stand before a reference to it.
var closing = regexp.MustCompile(`(?i)\b(c|f|r|i)(los(?:e[sd]?|ing)|ix(?:e[sd]|ing)?|esolv(?:e[sd]?|ing)|mplement(?:s|ed|ing)?)\b`)

// pull finds the other form in which GitHub refers to an issue.
var pull = regexp.MustCompile(`(?i)(GH)(-\d)`)

// marks are the characters with which Markdown and HTML begin anything, with their spelling as text.
var marks = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`,
	"@", "@"+breaker, "#", `\#`+breaker, "!", `\!`+breaker, "$", `\$`+breaker, "&", "&amp;"+breaker, "%", "%"+breaker, "~", `\~`+breaker,
	"://", ":"+breaker+"//", "www.", "www"+breaker+".",
)

// Plain returns the words of an agent, a command or a person as text for a forge: at most limit bytes, without secrets, and with
// nothing in it that a page renders, links or loads or that a bot obeys. It has no mentions, no references to issues, no words that
// close them, no HTML, no Markdown. Every line of it keeps its words.
func Plain(s string, secrets *redact.Redactor, limit int) string {
	s = term.Sanitize(secrets.Text(s))
	s = cut(s, limit)
	for { // marks make a text longer; what is too long is cut where it is still plain
		out := escape(s)
		over := len(out) - limit
		if over <= 0 || s == "" {
			return out
		}
		s = cut(s, max(len(s)-over, 0))
	}
}

// escape returns plain text as Markdown that shows exactly that text.
func escape(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		line = closing.ReplaceAllString(strings.TrimRight(line, " \t"), "${1}"+breaker+"${2}")
		line = marks.Replace(pull.ReplaceAllString(line, "${1}"+breaker+"${2}"))
		lines[i] = lineStart.ReplaceAllString(line, breaker+"$0")
	}
	return strings.Join(lines, "\n")
}

// lineStart finds the beginnings of lines with a meaning for Markdown or for bots: indents, commands, lists, rules.
var lineStart = regexp.MustCompile(`^(?:[ \t]+|[/=+:-]|\d+[.)])`)

// Quote is Plain as a quotation, so that each line begins with a mark that no bot takes for its own.
func Quote(s string, secrets *redact.Redactor, limit int) string {
	const mark = "> "
	s = strings.TrimSpace(s)
	for most := limit; ; most /= 2 {
		quoted := mark + strings.ReplaceAll(Plain(s, secrets, most), "\n", "\n"+mark)
		if len(quoted) <= limit || most < 1 {
			return quoted + "\n"
		}
	}
}

// cut returns the beginning of a text, with a mark if something is left out.
func cut(s string, limit int) string {
	const mark = " …"
	if len(s) <= limit {
		return s
	}
	if limit <= len(mark) {
		return ""
	}
	s = s[:limit-len(mark)]
	for s != "" && !utf8.ValidString(s[max(len(s)-utf8.UTFMax, 0):]) {
		s = s[:len(s)-1]
	}
	return s + mark
}
