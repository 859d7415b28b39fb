package flow_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/goal"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// TestDiagrams compares the diagrams and the table of messages of docs/ARCHITECTURE.md
// with the code that they show. After a change of a table, run with -rewrite.
func TestDiagrams(t *testing.T) {
	const name = "../../../docs/ARCHITECTURE.md"
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, d := range []struct{ name, want string }{
		{"diagram: task", diagram(task.Changes)},
		{"diagram: goal", diagram(ownRows(t, goal.Table))},
		{"table: messages", messageTable()},
	} {
		kind, _, _ := strings.Cut(d.name, ":")
		begin, end := fmt.Sprintf("<!-- %s -->\n", d.name), fmt.Sprintf("<!-- end of %s -->", kind)
		before, rest, ok := strings.Cut(text, begin)
		old, after, ends := strings.Cut(rest, end)
		if !ok || !ends {
			t.Fatalf("%s has no place for the %s", name, d.name)
		}
		if flag.Lookup("rewrite").Value.String() == "true" {
			text = before + begin + d.want + end + after
		} else if diff := cmp.Diff(old, d.want); diff != "" {
			t.Errorf("the %s of %s differs from the code (-rewrite):\n%s", d.name, name, diff)
		}
	}
	if text != string(data) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ownRows returns the rows of a table without task.Merges, with which it ends.
func ownRows(t *testing.T, table task.Table) task.Table {
	t.Helper()
	own := len(table) - len(task.Merges)
	if diff := cmp.Diff(task.Merges, table[own:]); diff != "" {
		t.Errorf("a table does not end with task.Merges:\n%s", diff)
	}
	return table[:own]
}

func diagram(t task.Table) string { return "\n```mermaid\n" + t.Mermaid() + "```\n\n" }

// messageTable returns messages.All as a table.
func messageTable() string {
	var b strings.Builder
	b.WriteString("\n| message | from | to | a repetition has the same | it |\n|---|---|---|---|---|\n")
	for _, m := range messages.All() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", reflect.TypeOf(m.Message).Elem().Name(), m.From, m.To, m.Once, m.About)
	}
	b.WriteString("\n")
	return b.String()
}

// Every stage can be reached and left, and of each stage and happening there is one
// row.
func TestTablesAreSound(t *testing.T) {
	for name, table := range map[string]task.Table{"task": task.Changes, "goal": goal.Table} {
		reached, left := map[task.Stage]bool{task.Pending: true}, map[task.Stage]bool{task.Done: true, task.Failed: true}
		seen := map[string]bool{}
		for _, r := range table {
			key := string(r.From) + " " + string(r.On)
			if seen[key] {
				t.Errorf("%s: two rows for %s", name, key)
			}
			seen[key] = true
			reached[r.To], left[r.From] = true, true
		}
		for stage := range left {
			if !reached[stage] {
				t.Errorf("%s: no row leads to %s", name, stage)
			}
		}
		for stage := range reached {
			if !left[stage] {
				t.Errorf("%s: no row leads out of %s", name, stage)
			}
		}
	}
}

// Every rule has left its name in a history that some script shows.
func TestEveryRuleIsShown(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "rule/rule.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for _, name := range scripts {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(data)
	}
	rules := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		rules++
		if !strings.Contains(shown.String(), "  rule "+name+" ") {
			t.Errorf("no script shows the rule %s", name)
		}
		return true
	})
	if rules < 20 {
		t.Errorf("only %d rules found", rules)
	}
}
