package document_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// A title is as long as it has characters, whatever its script; its JSON schema counts the same.
func TestTitlesAreCountedInCharacters(t *testing.T) {
	for _, one := range []string{"x", "画"} {
		in := forge.Intent{ID: "a", Project: "web", Settings: forge.Settings{Title: strings.Repeat(one, forge.MaxTitle), Body: "b"}}
		if why, err := document.CheckTitle(in.Title), in.Validate(); why != "" || err != nil && err.Field == "title" {
			t.Errorf("%d times %q: %s, %v", forge.MaxTitle, one, why, err)
		}
		in.Title += one
		const want = "has 501 characters; at most 500 are allowed"
		if why, err := document.CheckTitle(in.Title), in.Validate(); why != want || err == nil || err.Reason != want {
			t.Errorf("one more: %q, %v", why, err)
		}
	}
}

// A label is one line, whatever it was given with: a flag, a draft or a message.
func TestLabelsAreLines(t *testing.T) {
	for label, want := range map[string]string{
		"urgent": "", "a\nb": "holds a control character; it must be one line of text", "": "is empty",
		strings.Repeat("x", forge.MaxName+1): "has 101 bytes; at most 100 are allowed",
	} {
		in := forge.Intent{ID: "a", Project: "web", Source: forge.SourceHuman, Settings: forge.Settings{Title: "t", Body: "b"}}
		in.Labels = []string{label}
		got := ""
		if err := in.Validate(); err != nil {
			got = err.Field + " " + err.Reason
		}
		if want != "" {
			want = "labels " + want
		}
		if got != want {
			t.Errorf("%q: %q, want %q", label, got, want)
		}
	}
}
