package term

import "strings"

// Last returns the end of a text, bounded to most bytes of valid UTF-8, marked if
// something is left out.
func Last(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "...\n"
	if most <= len(mark) {
		return ""
	}
	return mark + strings.ToValidUTF8(s[len(s)-most+len(mark):], "")
}
