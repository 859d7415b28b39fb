package intake

import (
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// MaxOut bounds a text for a forge, in bytes. Forges refuse comments of more than 64 KiB.
const MaxOut = 60 << 10

// breaker stands inside of what a bot would obey. It cannot be seen, and no
// name or number holds it.
const breaker = "\u200b"

// closing finds words that make a forge close an issue when they stand before a reference to it.
var closing = pattern.New(`(?i)\b(c|f|r|i)(los(?:e[sd]?|ing)|ix(?:e[sd]|ing)?|esolv(?:e[sd]?|ing)|mplement(?:s|ed|ing)?)\b`)

// reference finds the forms in which trackers refer to an issue without a mark
// of their own: GH-1, ABC1-2, [issue:3].
var reference = pattern.New(`([A-Za-z]\w*|\[\w+)([-:]\d)`)

// commit matches digits that a forge could take for the hash of a commit, and
// part the pieces of them that are too short for one.
var (
	commit = pattern.New(`[0-9A-Fa-f]{7,}`)
	part   = pattern.New(`.{1,6}`)
)

// marks are the characters with which Markdown and HTML begin anything, with
// their spelling as text.
var marks = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`,
	"@", "@"+breaker, "#", `\#`+breaker, "!", `\!`+breaker, "$", `\$`+breaker, "&", "&amp;"+breaker, "%", "%"+breaker, "~", `\~`+breaker,
	"://", ":"+breaker+"//", "www.", "www"+breaker+".",
)

// Plain returns the words of an agent, a command or a person as text for a forge:
// at most limit bytes, without secrets, and with nothing in it that a page renders,
// links or loads or that a bot obeys. It has no mentions, no references to issues,
// no words that close them, no HTML, no Markdown. Every line of it keeps its words.
func Plain(s string, secrets *redact.Redactor, limit int) string {
	s = cut(withoutSecrets(s, secrets), limit)
	for { // marks make a text longer; what is too long is cut where it is still plain
		out := escape(s)
		if len(out) <= limit || s == "" {
			return out
		}
		s = cut(s, min(len(s)*limit/len(out), len(s)-1))
	}
}

// spelled finds the characters that term spells out because they cannot be seen.
var spelled = pattern.New(`<U\+[0-9A-F]{4,6}>`)

// withoutSecrets returns s sanitized and redacted. It looks for secrets in the text as
// it came, in what is left of it for a reader, and once more without all that cannot be
// seen: whatever stands between the pieces of a secret would leave the rest readable.
func withoutSecrets(s string, secrets *redact.Redactor) string {
	s = secrets.Text(term.Sanitize(secrets.Text(s)))
	bare := spelled.ReplaceAllString(term.Visible(s), "")
	if redacted := secrets.Text(bare); redacted != bare {
		return redacted
	}
	return s
}

// escape returns plain text as Markdown that shows exactly that text. Each line
// begins with a breaker, so that it is no list, rule or indented code, and no
// command of any bot: they have too many to list.
func escape(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		line = closing.ReplaceAllString(strings.TrimRight(line, " \t"), "${1}"+breaker+"${2}")
		line = reference.ReplaceAllString(line, "${1}"+breaker+"${2}")
		line = commit.ReplaceAllStringFunc(line, func(hash string) string {
			return strings.Join(part.FindAllString(hash, -1), breaker)
		})
		if line = marks.Replace(line); line != "" {
			line = breaker + line
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// inTitle has the marks that a forge obeys in a title, where Markdown is no more than text.
var inTitle = strings.NewReplacer("@", "@"+breaker, "#", "#"+breaker, "!", "!"+breaker, "$", "$"+breaker, "&", "&"+breaker, "%", "%"+breaker,
	"~", "~"+breaker, "`", "'", "<", "‹", ">", "›", "://", ":"+breaker+"//", "www.", "www"+breaker+".")

// Title returns words of others as one line for a place in which forges show a text as it
// is: nothing in it is a mention, a reference, a word that closes an issue, or another line.
func Title(s string, secrets *redact.Redactor, limit int) string {
	line := cut(strings.Join(strings.Fields(withoutSecrets(s, secrets)), " "), limit)
	line = closing.ReplaceAllString(line, "${1}"+breaker+"${2}")
	line = reference.ReplaceAllString(line, "${1}"+breaker+"${2}")
	line = commit.ReplaceAllStringFunc(line, func(hash string) string { return strings.Join(part.FindAllString(hash, -1), breaker) })
	return inTitle.Replace(line)
}

// Quote is Plain as a quotation, so that each line begins with a mark that no
// bot takes for its own.
func Quote(s string, secrets *redact.Redactor, limit int) string {
	s = strings.TrimSpace(s)
	for most := limit; ; most /= 2 {
		quoted := quotation(Plain(s, secrets, most))
		if len(quoted) <= limit || most < 1 {
			return quoted + "\n"
		}
	}
}

// QuoteWhole is Quote for a text of which a person has to see every character:
// those that cannot be seen are spelled out. It reports whether all of the text
// is there: not if a secret in it, or text in the shape of one, is left out.
func QuoteWhole(s string, secrets *redact.Redactor, limit int) (quoted string, whole bool) {
	s = term.Visible(strings.TrimSpace(s))
	clean := withoutSecrets(s, secrets)
	if all := quotation(escape(clean)); len(all) <= limit {
		return all + "\n", clean == s
	}
	return Quote(s, secrets, limit), false
}

// quotation returns plain text with the mark of a quotation before each line.
func quotation(plain string) string {
	const mark = "> "
	return mark + strings.ReplaceAll(plain, "\n", "\n"+mark)
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
