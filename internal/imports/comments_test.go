package imports

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"unicode/utf8"
)

// riddle matches definitions by a clause instead of a noun, which a reader has to parse
// twice: "foo is what ..." anywhere, "foo returns what ..." at the beginning. Verbs of saying
// may have a question as their object: "foo says what is wrong". It also matches a person or
// choice as a clause at the beginning ("asker is who asked"), and people that are not there.
var riddle = regexp.MustCompile(`(?i)\b(?:(?:is|are|was|were|has|have) what|somebody|nobody|anybody|former life)\b` +
	`|^(?:(?:an?|the) )?[\w.]+ (?:\w+ )?what\b|^(?:(?:an?|the) )?[\w.]+ (?:is|are|was|were) (?:whom?|whose|which)\b`)

var saying = regexp.MustCompile(`(?i)^(?:(?:an?|the) )?[\w.]+ (?:says|tells|reports|explains|describes|shows|asks|chooses|decides) what\b`)

// riddles counts the riddle forms in the doc comments of each folder.
func riddles(folders []folder) []figure {
	var out []figure
	for _, folder := range folders {
		f := figure{subject: folder.path}
		for _, s := range folder.files {
			for _, doc := range docs(s.tree) {
				text := strings.Join(strings.Fields(doc.Text()), " ")
				for _, match := range riddle.FindAllString(text, -1) {
					if !saying.MatchString(match) {
						f.value++
						f.places = append(f.places, s.at(doc)+": "+match)
					}
				}
			}
		}
		out = append(out, f)
	}
	return out
}

// habit matches words that texts for people had too often, where English has
// plainer ones: continues, fix, your own.
var habit = regexp.MustCompile(`(?i)\b(?:goes on|mend(?:s|ed|ing)?|of yours|told so)\b`)

// habits counts the habit words in the texts of each folder: in all strings of
// the code but the paths of imports.
func habits(folders []folder) []figure {
	var out []figure
	for _, folder := range folders {
		f := figure{subject: folder.path}
		for _, s := range folder.files {
			ast.Inspect(s.tree, func(n ast.Node) bool {
				if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING {
					for _, match := range habit.FindAllString(text.Value, -1) {
						f.value++
						f.places = append(f.places, s.at(text)+": "+match)
					}
				}
				return true
			})
		}
		out = append(out, f)
	}
	return out
}

// widest is the bound on the columns of a comment that stands on lines of its own.
const widest = 100

// wideComments counts the lines of such comments that are wider, in files
// without tests. What stands behind code, directives, and lines that are set in
// from the others, as lists, code and diagrams are, keep the width of code.
func wideComments(folders []folder) []figure {
	var out []figure
	for _, folder := range folders {
		f := figure{subject: folder.path}
		for _, s := range folder.files {
			lines := strings.Split(string(s.text), "\n")
			for _, group := range s.tree.Comments {
				for _, c := range group.List {
					at := s.set.Position(c.Pos()).Line
					line := lines[at-1]
					prose := strings.HasPrefix(c.Text, "// ") && !strings.HasPrefix(c.Text, "//  ")
					if prose && strings.TrimLeft(line, "\t") == c.Text && columns(line) > widest && strings.Contains(c.Text[3:], " ") {
						f.value++
						f.places = append(f.places, s.at(c))
					}
				}
			}
		}
		out = append(out, f)
	}
	return out
}

// columns returns how wide a line is on the screen.
func columns(line string) int { return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) }

// docs returns the comments of the package clause, and of all declarations and
// fields, before them and behind them.
func docs(tree *ast.File) []*ast.CommentGroup {
	var out []*ast.CommentGroup
	add := func(groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if g != nil {
				out = append(out, g)
			}
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.File:
			add(n.Doc)
		case *ast.FuncDecl:
			add(n.Doc)
		case *ast.GenDecl:
			add(n.Doc)
		case *ast.TypeSpec:
			add(n.Doc, n.Comment)
		case *ast.ValueSpec:
			add(n.Doc, n.Comment)
		case *ast.Field:
			add(n.Doc, n.Comment)
		}
		return true
	})
	return out
}

// density returns the comment lines for each 100 lines of code, of all folders together.
func density(folders []folder) []figure {
	code, comment := 0, 0
	for _, folder := range folders {
		for _, s := range folder.files {
			a, b := s.lines()
			code += a
			comment += b
		}
	}
	return []figure{{subject: "./...", value: comment * 100 / max(code, 1)}}
}

// densities returns the comment lines for each 100 lines of code, of each folder.
func densities(folders []folder) []figure {
	var out []figure
	for _, f := range folders {
		out = append(out, figure{subject: f.path, value: density([]folder{f})[0].value})
	}
	return out
}
