package drafts

import (
	"strings"
	"testing"
)

func TestTitles(t *testing.T) {
	for body, want := range map[string]string{
		"one line":                     "one line",
		"\n\n  # A heading  #\ntext":   "A heading",
		"#hashtag first":               "#hashtag first",
		"#\n###\n\ntext\n# heading":    "text",
		"with\ttab\x1b[31m and escape": "with tab [31m and escape",
		strings.Repeat("ä", 120):       strings.Repeat("ä", 99) + "…",
		"  \n":                         "",
	} {
		if got := titleOf(body); got != want {
			t.Errorf("title of %q is %q, want %q", body, got, want)
		}
	}
}
