package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPatterns checks that no program compiles a regular expression before it needs it, and that
// those of internal/pattern, which nothing compiles before they are used, are right.
func TestPatterns(t *testing.T) {
	expressions := 0
	for _, folder := range parse(t, os.DirFS(repository(t)), workspace(t)) {
		texts := constants(folder.files)
		for _, s := range folder.files {
			found, n := patternsIn(s, texts)
			for _, problem := range found {
				t.Error(problem)
			}
			expressions += n
		}
	}
	if expressions < 80 {
		t.Errorf("%d expressions were looked at; there are about a hundred", expressions)
	}
}

// The check itself, on a file with a mistake of each kind.
func TestPatternsIn(t *testing.T) {
	const text = `package p

var early = regexp.MustCompile("a+")

var wrong = pattern.New("a" + ` + "`(`" + `)

var right, late = pattern.New("b"), func() { regexp.MustCompile(early) }

func f() { regexp.MustCompile("c") }

const half, number = "(", 1

var list, other = pattern.New(strings.Join([]string{"x", half}, "|")), pattern.New(number)
`
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	file := source{"p.go", []byte(text), set, tree}
	found, n := patternsIn(file, constants([]source{file}))
	want := []string{
		"p.go:3: a variable that is compiled whenever a program starts: make it of internal/pattern",
		"p.go:5: error parsing regexp: missing closing ): `a(`",
		"p.go:13: error parsing regexp: missing closing ): `x|(`",
		"p.go:13: an expression that this test cannot read: make it of literals and constants",
	}
	if diff := cmp.Diff(want, found); diff != "" || n != 3 {
		t.Errorf("%d expressions, problems (-want +got):\n%s", n, diff)
	}
}

// patternsIn returns what is wrong with the regular expressions that are variables of a file, and
// how many were compiled to see it. Texts are the constants of the package.
func patternsIn(s source, texts map[string]string) (problems []string, n int) {
	note := func(at ast.Node, problem string) {
		problems = append(problems, fmt.Sprintf("%s:%d: %s", s.path, s.set.Position(at.Pos()).Line, problem))
	}
	for _, decl := range s.tree.Decls {
		if _, isFunc := decl.(*ast.FuncDecl); isFunc {
			continue
		}
		ast.Inspect(decl, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				_, isFunc := node.(*ast.FuncLit)
				return !isFunc
			}
			switch selected(call.Fun) {
			case "regexp.MustCompile":
				note(call, "a variable that is compiled whenever a program starts: make it of internal/pattern")
			case "pattern.New":
				expr, known := written(call.Args[0], texts)
				if !known {
					note(call, "an expression that this test cannot read: make it of literals and constants")
					break
				}
				n++
				if _, err := regexp.Compile(expr); err != nil {
					note(call, err.Error())
				}
			}
			return true
		})
	}
	return problems, n
}

// selected returns "package.Name" of an expression that is one; empty of another.
func selected(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if from, ok := sel.X.(*ast.Ident); ok {
			return from.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// constants returns the texts that are constants of a package, by their names.
func constants(files []source) map[string]string {
	texts := map[string]string{}
	for _, s := range files {
		for _, decl := range s.tree.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, spec := range d.Specs {
				v := spec.(*ast.ValueSpec)
				for i, e := range v.Values {
					if text, ok := written(e, texts); ok {
						texts[v.Names[i].Name] = text
					}
				}
			}
		}
	}
	return texts
}

// written returns the text of an expression that is made of literals, of constants, and of lists
// of such by strings.Join.
func written(e ast.Expr, texts map[string]string) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok := texts[e.Name]
		return text, ok
	case *ast.BinaryExpr:
		x, okX := written(e.X, texts)
		y, okY := written(e.Y, texts)
		return x + y, okX && okY && e.Op == token.ADD
	case *ast.CallExpr:
		if selected(e.Fun) != "strings.Join" {
			return "", false
		}
		list, isList := e.Args[0].(*ast.CompositeLit)
		between, ok := written(e.Args[1], texts)
		if !isList || !ok {
			return "", false
		}
		var parts []string
		for _, one := range list.Elts {
			part, ok := written(one, texts)
			if !ok {
				return "", false
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, between), true
	}
	return "", false
}
