package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPatterns checks that no program compiles a regular expression before it needs it, and that
// those of internal/pattern, which nothing compiles before they are used, are right.
func TestPatterns(t *testing.T) {
	expressions := 0
	for _, folder := range parse(t, os.DirFS(repository(t)), workspace(t)) {
		for _, s := range folder.files {
			found, n := patternsIn(s)
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
`
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found, n := patternsIn(source{"p.go", []byte(text), set, tree})
	want := []string{
		"p.go:3: a variable that is compiled whenever a program starts: make it of internal/pattern",
		"p.go:5: error parsing regexp: missing closing ): `a(`",
	}
	if diff := cmp.Diff(want, found); diff != "" || n != 2 {
		t.Errorf("%d expressions, problems (-want +got):\n%s", n, diff)
	}
}

// patternsIn returns what is wrong with the regular expressions that are variables of a file, and
// how many were compiled to see it: those that are written where the variable is.
func patternsIn(s source) (problems []string, n int) {
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
				if expr, known := written(call.Args[0]); known {
					n++
					if _, err := regexp.Compile(expr); err != nil {
						note(call, err.Error())
					}
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

// written returns the text of an expression that is made of literals.
func written(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		x, okX := written(e.X)
		y, okY := written(e.Y)
		return x + y, okX && okY && e.Op == token.ADD
	}
	return "", false
}
