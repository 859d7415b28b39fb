package git

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OID is the full name of a git object: 40 lower-case hexadecimal digits. Make one with ParseOID.
type OID string

// ParseOID validates s as a full object name.
func ParseOID(s string) (OID, error) {
	if len(s) != 40 {
		return "", fmt.Errorf("object name %q: want 40 hexadecimal digits", Clip(s))
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", fmt.Errorf("object name %q: want 40 lower-case hexadecimal digits", Clip(s))
		}
	}
	if strings.Trim(s, "0") == "" {
		return "", fmt.Errorf("object name %q: the null object name", s)
	}
	return OID(s), nil
}

// Short returns the first 12 digits.
func (o OID) Short() string { return string(o)[:min(12, len(o))] }

// Name is one path element that is at once a directory, a ref component and an
// argument: [a-z0-9] then [a-z0-9-], at most 80 characters. Intent ids, task ids, which
// are longer, and what is made of them are such names. Make one with ParseName.
type Name string

// ParseName validates s as a Name.
func ParseName(s string) (Name, error) {
	if s == "" || len(s) > 80 {
		return "", fmt.Errorf("name %q: want 1 to 80 characters", Clip(s))
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c != '-' || i == 0) {
			return "", fmt.Errorf("name %q: want a lower-case letter or digit, then letters, digits and -", Clip(s))
		}
	}
	return Name(s), nil
}

// Branch is the short name of a branch, such as "main". Make one with ParseBranch.
type Branch string

// ParseBranch validates s by the rules of git check-ref-format --branch, and refuses names that
// git itself would read as something else (HEAD, @, anything that begins with a dash).
func ParseBranch(s string) (Branch, error) {
	reason := ""
	switch {
	case s == "" || len(s) > 200:
		reason = "want 1 to 200 characters"
	case !utf8.ValidString(s):
		reason = "not UTF-8"
	case s == "HEAD" || s == "@" || strings.HasPrefix(s, "-") || strings.HasPrefix(s, "refs/"):
		reason = "reserved"
	case strings.ContainsAny(s, " ~^:?*[\\") || strings.ContainsFunc(s, unicode.IsControl):
		reason = "holds a character that git does not allow"
	case strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.HasSuffix(s, "."):
		reason = "holds a sequence that git does not allow"
	}
	for part := range strings.SplitSeq(s, "/") {
		if reason == "" && (part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock")) {
			reason = "holds a component that git does not allow"
		}
	}
	if reason != "" {
		return "", fmt.Errorf("branch %q: %s", Clip(s), reason)
	}
	return Branch(s), nil
}

// TaskBranch returns the branch that a task's agent works on, forge/<task>.
func TaskBranch(task Name) Branch { return Branch("forge/" + string(task)) }

// Ref returns the full ref name, refs/heads/<branch>.
func (b Branch) Ref() string { return "refs/heads/" + string(b) }

// Path is a slash-separated path inside a tree, clean and relative. Make one with ParsePath.
type Path string

// ParsePath validates s as a Path.
func ParsePath(s string) (Path, error) {
	if s == "" || len(s) > 4096 || path.Clean(s) != s || path.IsAbs(s) || s == "." || s == ".." || strings.HasPrefix(s, "../") ||
		strings.ContainsFunc(s, unicode.IsControl) {
		return "", fmt.Errorf("path %q: want a clean relative path", Clip(s))
	}
	return Path(s), nil
}

// Clip returns the first 80 bytes of a text that stands in an error message.
func Clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
