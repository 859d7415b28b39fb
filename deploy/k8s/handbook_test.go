//go:build manifests || cluster

package k8s

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// handbook is the guide.
type handbook struct {
	t    *testing.T
	text string
}

// newHandbook reads the guide.
func newHandbook(t *testing.T) *handbook {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	return &handbook{t, string(text)}
}

// fenced matches the fenced blocks of a document, with their indentation and language.
var fenced = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")

// blocks returns the fenced blocks in a language, without their indentation.
func (h *handbook) blocks(language string) []string {
	var list []string
	for _, m := range fenced.FindAllStringSubmatch(h.text, -1) {
		if m[2] == language {
			list = append(list, regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[3], ""))
		}
	}
	return list
}

// block returns the one block that has a text.
func (h *handbook) block(with string) string {
	h.t.Helper()
	var found []string
	for _, b := range append(h.blocks("sh"), h.blocks("yaml")...) {
		if strings.Contains(b, with) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		h.t.Fatalf("%d blocks of the guide have %q", len(found), with)
	}
	return found[0]
}

// commands returns every command line of kubectl in the guide: those in blocks, and those in the
// text. Flags alone, such as `kubectl`, are none.
func (h *handbook) commands() []string {
	var list []string
	for _, b := range h.blocks("sh") {
		for line := range strings.Lines(b) {
			for part := range strings.SplitSeq(line, "|") {
				list = append(list, strings.TrimSpace(part))
			}
		}
	}
	text := fenced.ReplaceAllString(h.text, "")
	for _, m := range regexp.MustCompile("`(kubectl [^`]+)`").FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return slices.DeleteFunc(list, func(s string) bool { return !strings.HasPrefix(s, "kubectl ") })
}
