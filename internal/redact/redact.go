// Package redact takes secrets out of text, on its way to logs, journals and people.
//
// A [Redactor] finds two things: values that it was given (see [Environ] and [URL]), also if
// they are cut off at either end or wrapped by white space, and keys and tokens of well-known
// shapes, such as those of GitHub, without knowing them. [Redactor.Text] is for a text that is
// there as a whole; a [Stream] finds the same in pieces, however they are split.
//
// It is a net against accidents: whoever wants to smuggle a secret out can spell it otherwise.
package redact

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Mark stands in place of each secret.
const Mark = "[redacted]"

const (
	// shortest is the least length of a value that is looked for, in bytes: shorter
	// ones are found in innocent text.
	shortest = 8
	// keep is the length of the text before a piece that is looked at again, in bytes: more
	// than the part of a secret by which it is recognised.
	keep = 64
	// keepOpen is the same, if a secret may still go on.
	keepOpen = 16 << 10
)

// shapes match secrets by how they look. A group, if there is one, is the secret.
var shapes = pattern.New(strings.Join([]string{
	`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`,
	`sk-ant-[A-Za-z0-9_-]{4,}`,                            // Anthropic
	`\bsk-[A-Za-z0-9_-]{10,}`,                             // OpenAI and others
	`gh[opsur]_[A-Za-z0-9]{8,}`,                           // GitHub
	`github_pat_[A-Za-z0-9_]{8,}`,                         //
	`glpat-[A-Za-z0-9_-]{8,}`,                             // GitLab
	`npm_[A-Za-z0-9]{16,}`,                                //
	`A(?:KIA|SIA)[A-Z0-9]{8,}`,                            // AWS
	`AIza[A-Za-z0-9_-]{8,}`,                               // Google
	`xox[a-z]-[A-Za-z0-9-]{8,}`,                           // Slack
	`xapp-[A-Za-z0-9-]{8,}`,                               // its apps
	`\beyJ[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)*`,        // JSON in base64, as JWTs are
	`\bS[ACNOUX][A-Z2-7]{20,}`,                            // seeds of NATS keys
	`://([^/\s@:]*:[^/\s@]+)@`,                            // URLs with a password
	`(?i:\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{16,})`, // headers
}, "|"))

// value matches the value of an option or a variable, as a shell reads it. What
// stands for another one is none, such as $TOKEN, and neither is a file's name.
// One in double quotes may be in a string of JSON.
const value = `("[^"$\n][^"\n]{3,}"|'[^'$\n][^'\n]{3,}'|\\"[^"\\$\n][^"\\\n]{3,}\\"|[^\s"'\x60\\$=/.~;&|<>()\[{][^\s"'\x60\\;&|<>()]{3,})`

// named matches secrets in the line of a command by what they are given as. The
// group is the secret.
var named = pattern.New(strings.Join([]string{
	`\b[A-Z0-9_]{0,32}(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|(?:ACCESS|PRIVATE|SECRET)_KEY|_PWD|_PAT)=` + value, // variables
	`--(?:[a-z]{1,16}-){0,2}(?:token|secret|password|passwd|passphrase|api-?key)=` + value,                                   // options
	`--(?:[a-z]{1,16}-){0,2}(?:token|secret|password|passwd|passphrase|api-?key)\s+([^\s"'$\\;&|]*[0-9][^\s"'\\;&|]{3,})`,
	`\s(?:-u\s*|--user[= ])\\?["']?[A-Za-z][^\s:"']{0,32}:` + value, // curl, and those like it
}, "|"))

// Redactor knows secrets. The zero value knows only what they look like. It is
// safe for concurrent use.
type Redactor struct {
	mu sync.Mutex // of Know
	// known is replaced as a whole when there is more to know; nil before.
	known atomic.Pointer[values]
}

// values are the secrets that a Redactor was told. They are never changed.
type values struct {
	// known are the values themselves, without white space.
	known map[string]struct{}
	// parts are the pieces that known values are recognised by, by their length: every piece of
	// a value that is that long.
	parts map[int]map[string]struct{}
	// begins says for every two bytes whether a part begins with them: for most none does, so
	// that most positions need no look into parts.
	begins [1 << 16]bool
}

// begin returns the entry of begins for the first two bytes of s.
func (k *values) begin(s string) *bool { return &k.begins[int(s[0])<<8|int(s[1])] }

// New returns a Redactor that knows some secret values. Those of less than eight bytes are left
// out: they cannot be told from innocent text.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	r.Know(secrets...)
	return r
}

// Know adds secret values, such as a key that took the place of another one. Streams that have
// begun know them, too; those known before stay known. It costs little if there is nothing new.
func (r *Redactor) Know(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := map[string]struct{}{}
	if old := r.known.Load(); old != nil {
		maps.Copy(told, old.known)
	}
	before := len(told)
	for _, v := range secrets {
		if v = squeeze(v, nil); len(v) >= shortest {
			told[v] = struct{}{}
		}
	}
	if len(told) == before {
		return
	}
	next := &values{known: told, parts: map[int]map[string]struct{}{}}
	for v := range told {
		n := min(max(len(v)/2, 6), 12)
		if next.parts[n] == nil {
			next.parts[n] = map[string]struct{}{}
		}
		for i := range len(v) - n + 1 {
			next.parts[n][v[i:i+n]] = struct{}{}
			*next.begin(v[i:]) = true
		}
	}
	r.known.Store(next)
}

// Text returns a text with [Mark] in place of secrets. Redacting twice changes nothing.
func (r *Redactor) Text(s string) string { return replace(s, r.find(s), 0) }

// Stream redacts pieces of one text, in their order. It is for one goroutine.
type Stream struct {
	redactor *Redactor
	// before is the end of the pieces so far, not redacted.
	before string
}

// Stream returns a stream at its beginning.
func (r *Redactor) Stream() *Stream { return &Stream{redactor: r} }

// Text returns the next piece without secrets, also those that began in earlier pieces. A
// secret that is split may get through up to the length by which it is recognised: half of a
// known value, 12 bytes at most, and the first characters of a shape.
func (s *Stream) Text(piece string) string {
	all := s.before + piece
	n := len(s.before)
	found := s.redactor.find(all)
	open := len(all)
	for _, f := range found {
		if f.end == len(all) {
			open = min(open, f.start)
		}
	}
	for _, f := range s.redactor.find(piece) { // a line may begin with what the one before would hide
		found = append(found, span{f.start + n, f.end + n})
	}
	s.before = all[max(min(open, len(all)-keep), len(all)-keepOpen, 0):]
	return replace(all, found, n)
}

// span is a part of a text, in bytes.
type span struct{ start, end int }

// find returns the secrets in a text, in no order. They may overlap.
func (r *Redactor) find(s string) []span {
	var found []span
	if suspicious(s) {
		for _, m := range shapes.FindAllStringSubmatchIndex(s, -1) {
			f := span{m[0], m[1]}
			for i := 2; i < len(m); i += 2 {
				if m[i] >= 0 {
					f = span{m[i], m[i+1]}
				}
			}
			if random(s[m[0]:m[1]], s[f.start:f.end]) {
				found = append(found, f)
			}
		}
	}
	found = append(found, findNamed(s)...)
	known := r.known.Load()
	if known == nil {
		return found
	}
	at := make([]int, 0, len(s))
	tight := squeeze(s, &at)
	for n, parts := range known.parts {
		for i := 0; i+n <= len(tight); i++ {
			if !*known.begin(tight[i:]) {
				continue
			}
			if _, ok := parts[tight[i:i+n]]; ok {
				found = append(found, span{at[i], at[i+n-1] + 1})
			}
		}
	}
	return found
}

// findNamed returns the secrets that a command line gives by a name or a flag,
// such as TOKEN=... and --password ...
func findNamed(s string) (found []span) {
	if !namedHint(s) {
		return nil
	}
	for _, m := range named.FindAllStringSubmatchIndex(s, -1) {
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				found = append(found, span{m[i], m[i+1]})
			}
		}
	}
	return found
}

// certain lists beginnings of matches that are secrets also without a digit.
var certain = []string{"-----BEGIN", "sk-ant-", "eyJ", "://"}

// random tells a secret from a word that only looks like one, such as sk-learn-tutorial:
// it has a digit.
func random(match, secret string) bool {
	return strings.ContainsAny(secret, "0123456789") ||
		slices.ContainsFunc(certain, func(prefix string) bool { return strings.HasPrefix(match, prefix) })
}

// hints lists the beginnings of all shapes: in a text without any of them, none
// can match. A shape that is added to shapes is added here, too.
var hints = []string{
	"sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "AKIA", "ASIA", "AIza", "xox", "xapp-", "eyJ",
	"PRIVATE KEY", "://", "SA", "SC", "SN", "SO", "SU", "SX", "earer", "EARER", "asic", "ASIC",
}

// suspicious reports whether any shape may match. It is cheaper than matching.
func suspicious(s string) bool {
	return slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(s, hint) })
}

// namedHints lists a part of each way in which named finds a secret.
var namedHints = []string{
	"TOKEN=", "SECRET=", "PASSW", "PASSPHRASE=", "KEY=", "_PWD=", "_PAT=", "token", "secret", "passw", "passphrase", "key", " -u", "--user",
}

// namedHint is suspicious for named.
func namedHint(s string) bool {
	return slices.ContainsFunc(namedHints, func(hint string) bool { return strings.Contains(s, hint) })
}

// squeeze returns a text without white space. It appends the position of each byte to at, if
// that is not nil.
func squeeze(s string, at *[]int) string {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			b = append(b, c)
			if at != nil {
				*at = append(*at, i)
			}
		}
	}
	return string(b)
}

// replace returns the text from a byte on, with one Mark in place of each run of bytes that
// were found.
func replace(s string, found []span, from int) string {
	if len(found) == 0 {
		return s[from:]
	}
	hidden := make([]bool, len(s))
	for _, f := range found {
		for i := f.start; i < f.end; i++ {
			hidden[i] = true
		}
	}
	var b strings.Builder
	for i := from; i < len(s); i++ {
		if !hidden[i] {
			b.WriteByte(s[i])
		} else if i == from || !hidden[i-1] {
			b.WriteString(Mark)
		}
	}
	return b.String()
}
