package render

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// flowRules returns the names of the rules in flow's package rule.
func flowRules(t *testing.T) []string {
	t.Helper()
	name := filepath.Join("..", "..", "..", "..", "services", "runner", "flow", "rule", "rule.go")
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			value, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, value)
		}
		return true
	})
	return list
}

// Every rule of the flow is explained, in one line, and no other.
func TestRules(t *testing.T) {
	names := flowRules(t)
	if len(names) < 20 {
		t.Fatalf("only %d rules found", len(names))
	}
	for _, name := range names {
		switch text := Rule(name); {
		case text == "":
			t.Errorf("the rule %s has no explanation", name)
		case strings.ContainsAny(text, "\n.") || len(text) > 100:
			t.Errorf("%s: %q is not one short line without a period", name, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if !slices.Contains(names, name) {
			t.Errorf("there is no rule %s", name)
		}
	}
}
