package render_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

var top = filepath.Join("..", "..", "..", "..")

// declared returns the values of the constants of a type, as a file of the vocabulary
// declares them.
func declared(t *testing.T, file, typ string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(top, file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != typ {
			return true
		}
		for _, value := range spec.Values {
			text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, text)
		}
		return true
	})
	return list
}

func TestReasonsAreComplete(t *testing.T) {
	var names []string
	for _, r := range render.Reasons() {
		names = append(names, string(r.Name))
		for _, text := range []string{r.Meaning, r.Then, r.Do} {
			if text == "" || strings.ContainsAny(text, "\n|") || strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q", r.Name, text)
			}
		}
	}
	if diff := cmp.Diff(declared(t, "failure.go", "FailureReason"), names); diff != "" {
		t.Error(diff)
	}
}

// The guide has the same table.
func TestGuideHasReasons(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join(top, "docs", "guide-failures.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(guide)) {
		if strings.HasPrefix(line, "| `") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	var want []string
	for _, r := range render.Reasons() {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", r.Name, r.Meaning, r.Then, r.Do))
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("the table of the guide should be:\n%s\n%s", strings.Join(want, "\n"), diff)
	}
}

func TestReasonOf(t *testing.T) {
	for text, want := range map[string]string{
		"implement: timeout: it took 30m":               "timeout",
		"fix-001: review: invalid_output: not JSON: {}": "invalid_output",
		"analyze: missing_cli: exec: \"claude\": no":    "missing_cli",
		"config: a: b": "config",
		"the change could not be merged: no: a: auth": "",
		"the auth: module": "",
		"":                 "",
	} {
		r, ok := render.ReasonOf(text)
		if string(r.Name) != want || ok != (want != "") {
			t.Errorf("%q: got %q", text, r.Name)
		}
	}
}
