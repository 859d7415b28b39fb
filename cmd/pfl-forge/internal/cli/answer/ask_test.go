package answer

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	model "github.com/pfl-forge/pfl-forge/document"
)

// A number stands for what is suggested, unless that is what is suggested.
func TestChosen(t *testing.T) {
	for _, c := range []struct {
		suggested   []string
		typed, want string
	}{
		{[]string{"red", "blue"}, " 2 ", "blue"},
		{[]string{"red", "blue"}, "3", "3"},
		{[]string{"red", "blue"}, "0", "0"},
		{[]string{"10", "2"}, "2", "2"},
		{nil, "1", "1"},
		{nil, "  ", ""},
	} {
		if got := chosen(&document.Question{Clarification: model.Clarification{SuggestedAnswers: c.suggested}}, c.typed); got != c.want {
			t.Errorf("%q of %q is %q, want %q", c.typed, c.suggested, got, c.want)
		}
	}
}
