package flow_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// boundRow is a row of the table of bounds: the number, and the constant or the
// field of the policy that has it.
var boundRow = regexp.MustCompile("(?m)^\\| (\\d+) \\|.*\\| `(\\w+)` of `([\\w/.]+)` \\|$")

// TestBoundsOfARun compares the table "Bounds of a run" of docs/ARCHITECTURE.md with the
// constants of the rules, and with the policy that holds until a project says otherwise.
func TestBoundsOfARun(t *testing.T) {
	data, err := os.ReadFile("../../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "\n#### Bounds of a run\n")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md has no table of bounds")
	}
	table, _, _ := strings.Cut(rest, "\n#")
	rows := boundRow.FindAllStringSubmatch(table, -1)
	if most := strings.Count(table, "\n|") - 2; len(rows) != most || most < 5 {
		t.Errorf("%d of %d rows can be compared", len(rows), most)
	}
	policy := reflect.ValueOf(forge.DefaultPolicy())
	for _, row := range rows {
		said, name, in := row[1], row[2], row[3]
		var have string
		if in == "forge.DefaultPolicy" {
			if f := policy.FieldByName(name); f.IsValid() {
				have = strconv.FormatInt(f.Int(), 10)
			}
		} else {
			have = constantOf(t, filepath.Join("..", filepath.FromSlash(in)), name)
		}
		if have != said {
			t.Errorf("docs/ARCHITECTURE.md says that %s of %s is %s, and it is %q", name, in, said, have)
		}
	}
}

// constantOf returns the text of a constant of a file; empty if the file has none of that name.
func constantOf(t *testing.T, path, name string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && spec.Names[0].Name == name {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
				text = lit.Value
			}
		}
		return true
	})
	return text
}
