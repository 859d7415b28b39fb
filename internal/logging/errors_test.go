package logging_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestErrorsAreListed: an alert on ERROR wakes a person, so each one is in the operators'
// guide with what to do, and was thought about; what mends itself is no ERROR.
func TestErrorsAreListed(t *testing.T) {
	listed := map[string]bool{}
	guide, err := os.ReadFile("../../docs/guide-operators.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(guide), "| message of an `ERROR` |")
	if !found {
		t.Fatal("the guide has no table of errors")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, "|"); len(cells) > 2 && strings.HasPrefix(row, "| `") {
			listed[strings.Trim(cells[1], " `")] = true
		}
	}
	logged := map[string]bool{}
	for _, dir := range []string{"agent", "bus", "config", "git", "internal", "jobs", "notify", "service", "services"} {
		errorsIn(t, filepath.Join("../..", dir), logged)
	}
	for _, message := range slices.Sorted(maps.Keys(logged)) {
		if !listed[message] {
			t.Errorf("%q is an ERROR that docs/guide-operators.md does not list: say there what to do, or make it a WARN if it mends itself", message)
		}
	}
	for message := range listed {
		if !logged[message] {
			t.Errorf("docs/guide-operators.md lists %q, which nobody logs", message)
		}
	}
	if len(logged) < 10 {
		t.Errorf("only %d errors were found: this test looks in the wrong place", len(logged))
	}
}

// errorsIn adds the messages that are logged as errors below a directory. A logger is passed in
// under a name that ends in log.
func errorsIn(t *testing.T, dir string, to map[string]bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !strings.HasSuffix(strings.ToLower(nameOf(method.X)), "log") {
				return true
			}
			at := slices.Index([]string{"Error", "ErrorContext"}, method.Sel.Name)
			if at < 0 {
				return true
			}
			message, ok := call.Args[at].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: the message is no constant", path)
				return true
			}
			text, err := strconv.Unquote(message.Value)
			if err != nil {
				t.Error(err)
			}
			to[text] = true
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// nameOf returns the last name of an expression such as a.b.Log.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
