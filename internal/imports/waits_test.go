package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// clocks are the functions that a test could wait with.
var clocks = map[string][]string{
	"time":    {"After", "AfterFunc", "NewTicker", "NewTimer", "Sleep", "Tick"},
	"context": {"WithDeadline", "WithDeadlineCause", "WithTimeout", "WithTimeoutCause"},
}

// waiting are the only files with tests, or with what tests share, that may use clocks.
var waiting = map[string]string{
	"internal/wait/wait.go":                            "it is how all others wait",
	"internal/wait/wait_test.go":                       "time is what is tested",
	"cmd/pfl-forge/internal/cli/target/notice_test.go": "time is what is tested, and it is that of a synctest bubble",
	"agent/agenttest/protocol.go":                      "the model answers slowly when a script says so",
}

// TestWaits checks that tests wait through internal/wait: nobody else has a clock that
// could run out on a busy machine.
func TestWaits(t *testing.T) {
	found, err := clocksIn(os.DirFS(repository(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range found {
		file, _, _ := strings.Cut(use, ":")
		if waiting[file] == "" {
			t.Errorf("%s: tests wait through internal/wait, which does not fail on a busy machine", use)
		}
	}
}

// The check itself, on files that wait in their own ways.
func TestClocksIn(t *testing.T) {
	source := func(lines ...string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package p\n" + strings.Join(lines, "\n") + "\n")}
	}
	found, err := clocksIn(fstest.MapFS{
		"a_test.go":         source(`import "time"`, `func f() { <-time.After(time.Second) }`),
		"b_test.go":         source(`import clock "time"`, `var tick = clock.NewTicker`),
		"c_test.go":         source(`import "context"`, `func f() { context.WithTimeout(nil, 0); context.WithCancel(nil) }`),
		"d_test.go":         source(`import time "example.org/other"`, `func f() { time.Sleep() }`),
		"bus/bustest/s.go":  source(`import "time"`, `func f() { time.Sleep(1); time.Now() }`),
		"bus/production.go": source(`import "time"`, `func f() { time.Sleep(1) }`),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a_test.go:3: time.After", "b_test.go:3: time.NewTicker", "bus/bustest/s.go:3: time.Sleep", "c_test.go:3: context.WithTimeout",
	}
	slices.Sort(found)
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("clocks (-want +got):\n%s", diff)
	}
}

// clocksIn lists where tests, and what tests share, use clocks.
func clocksIn(root fs.FS) ([]string, error) {
	files, err := scan(root)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, f := range files {
		if !f.test && !slices.Contains(f.imports, "testing") && !strings.HasSuffix(f.pkg, "test") {
			continue
		}
		uses, err := clocksOf(root, f.path)
		if err != nil {
			return nil, err
		}
		found = append(found, uses...)
	}
	return found, nil
}

func clocksOf(root fs.FS, name string) ([]string, error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	local := map[string]string{}
	for _, spec := range parsed.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if clocks[path] == nil {
			continue
		}
		local[path] = path
		if spec.Name != nil {
			local[path] = spec.Name.Name
		}
	}
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := sel.X.(*ast.Ident)
		for path, as := range local {
			if ok && from.Name == as && slices.Contains(clocks[path], sel.Sel.Name) {
				found = append(found, fmt.Sprintf("%s:%d: %s.%s", name, set.Position(sel.Pos()).Line, path, sel.Sel.Name))
			}
		}
		return true
	})
	return found, nil
}
