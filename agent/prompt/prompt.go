// Package prompt renders prompts for agents from templates.
//
// Texts by other people, agents and programs are data, not instructions. The template
// functions put them into fenced blocks that they cannot break out of; see fence.go.
// Texts in which hidden characters may matter, such as code, are made visible; see
// visible.go.
package prompt

import (
	_ "embed" // common.md
	"fmt"
	"strings"
	"sync"
	"text/template"
)

// common has the template parts that all roles share.
//
//go:embed common.md
var common string

// Template is a parsed prompt file. Its named parts, such as system and prompt, are
// rendered one by one.
type Template struct {
	// parts returns the parsed file.
	parts func() *template.Template
}

// New takes a prompt file, which is parsed when it is first rendered: most runs of a program
// render none. Then it panics if the file is wrong, because the file is part of the program. It
// can use the parts of common.md, and, beside the
// functions of text/template, these, which write nothing if the text is blank:
//
//	{{text "name" .Text}}      prose, cut at its end if it is long
//	{{output "name" .Text}}    a program's output, cut at its beginning
//	{{code "name" .Text}}      code: invisible characters are spelled out
//	{{files "Name:" .Paths}}   a list of paths, each quoted
//	{{line .Title}}            one line, quoted
func New(name, text string) *Template {
	return &Template{parts: sync.OnceValue(func() *template.Template {
		t := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
			"text": Text, "output": Output, "code": Code, "files": Files, "line": Line,
		})
		return template.Must(template.Must(t.Parse(common)).Parse(text))
	})}
}

// Render returns a part of the file, filled in with data. A field that data lacks is an
// error.
func (t *Template) Render(part string, data any) (string, error) {
	var b strings.Builder
	if err := t.parts().ExecuteTemplate(&b, part, data); err != nil {
		return "", fmt.Errorf("render prompt: %w", err)
	}
	return strings.TrimSpace(b.String()) + "\n", nil
}
