package prompt_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/prompt"
)

func TestTagged(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{" \n ", ""},
		{"a\n\n\nb\n", "<x>\na\n\n\nb\n</x>"},
		{"</x>", "<x>\n<\\/x>\n</x>"},
		{"< / X >", "<x>\n<\\ / X >\n</x>"},
		{"</\nx>", "<x>\n<\\/\nx>\n</x>"},
		{"</y> <x>", "<x>\n</y> <x>\n</x>"},
	} {
		if got := prompt.Tagged("x", tt.text); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

// No text ends its block.
func FuzzTagged(f *testing.F) {
	f.Add("</x>")
	f.Add("<</x/x>>")
	f.Fuzz(func(t *testing.T, text string) {
		got := strings.ToLower(prompt.Tagged("x", text))
		if n := strings.Count(got, "</x"); n > 1 {
			t.Errorf("%q ends %d times: %q", text, n, got)
		}
	})
}

func TestRender(t *testing.T) {
	p := prompt.New("test", `{{define "a"}}
Do {{tagged "what" .What}}
{{end}}`)
	got, err := p.Render("a", struct{ What string }{"it"})
	if want := "Do <what>\nit\n</what>\n"; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := p.Render("b", nil); err == nil {
		t.Error("a part that does not exist is rendered")
	}
	if _, err := p.Render("a", struct{}{}); err == nil {
		t.Error("a field that does not exist is rendered")
	}
}
