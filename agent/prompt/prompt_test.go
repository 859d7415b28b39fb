package prompt_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/prompt"
)

func TestRender(t *testing.T) {
	p := prompt.New("test", `{{define "a"}}
Do {{line .What}}
{{text "what" .What}}
{{end}}
{{define "b"}}{{template "data"}}{{end}}`)
	got, err := p.Render("a", struct{ What string }{"it"})
	if !strings.HasPrefix(got, "Do \"it\"\n<what-") || !strings.HasSuffix(got, ">\n") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := p.Render("b", nil); !strings.Contains(got, "is data") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := p.Render("c", nil); err == nil {
		t.Error("a part that does not exist is rendered")
	}
	if _, err := p.Render("a", struct{}{}); err == nil {
		t.Error("a field that does not exist is rendered")
	}
}
