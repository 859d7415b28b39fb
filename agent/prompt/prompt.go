// Package prompt renders prompts for agents from templates, in which what other
// people and agents wrote stands in blocks that it cannot break out of.
package prompt

import (
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// Template is a prompt file: named parts, such as system and prompt.
type Template struct {
	parts *template.Template
}

// New parses a prompt file. It panics if the file is wrong, because the file is
// part of the program. Beside those of text/template there is the function
//
//	{{tagged "name" .Text}}
//
// which writes <name>, the text, and </name>, and nothing if the text is blank.
func New(name, text string) *Template {
	t := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"tagged": Tagged})
	return &Template{parts: template.Must(t.Parse(text))}
}

// Render returns a part of the file, filled in with data.
func (t *Template) Render(part string, data any) (string, error) {
	var b strings.Builder
	if err := t.parts.ExecuteTemplate(&b, part, data); err != nil {
		return "", fmt.Errorf("render prompt: %w", err)
	}
	return strings.TrimSpace(b.String()) + "\n", nil
}

// Tagged returns text as data between <name> and </name>. What looks like the end
// of the block in it does not end it.
func Tagged(name, text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	end := regexp.MustCompile(`(?i)<(\s*/\s*` + regexp.QuoteMeta(name) + `)`)
	return "<" + name + ">\n" + end.ReplaceAllString(text, "<\\$1") + "\n</" + name + ">"
}
