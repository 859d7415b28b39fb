// Package imports tests what the compiler does not check about the source of this
// repository: who may import whom (walls_test.go), and that files, packages and
// types stay small, and their comments readable (shape_test.go). It holds tests
// only.
//
// A rule is a row of a table, with the reason that a failure prints. What misses a
// rule of shape_test.go still is listed in exceptions_test.go, which only shrinks.
package imports

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const maxLines = 500

func TestWalls(t *testing.T) {
	for _, violation := range violations(workspace(t), allowLists, restrictions) {
		t.Error(violation)
	}
}

func TestFilesStaySmall(t *testing.T) {
	for _, f := range workspace(t) {
		if !f.generated && f.lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by what its parts are about", f.path, f.lines, maxLines)
		}
	}
}

// alone are modules that raise what others require. They are not in the workspace, and have a
// target of the Makefile.
var alone = map[string]bool{"deploy/keda": true, "deploy/monitoring": true}

// A module that go.work does not name is neither built nor tested by anyone.
func TestWorkspaceHasEveryModule(t *testing.T) {
	root := os.DirFS(repository(t))
	work, err := fs.ReadFile(root, "go.work")
	if err != nil {
		t.Fatal(err)
	}
	used := strings.Fields(string(work))
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && outside(name) {
			return fs.SkipDir
		}
		if dir := path.Dir(name); path.Base(name) == "go.mod" && dir != "." && !alone[dir] && !slices.Contains(used, "./"+dir) {
			t.Errorf("go.work does not use ./%s: go work use ./%s", dir, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The rules themselves, on a small repository that breaks some of them.
func TestViolations(t *testing.T) {
	source := func(imports ...string) *fstest.MapFile {
		text := "package p\n"
		for _, imp := range imports {
			text += "import _ \"" + imp + "\"\n"
		}
		return &fstest.MapFile{Data: []byte(text)}
	}
	files, err := scan(fstest.MapFS{
		"doc.go":                         source("time", module+"/bus"),
		"doc_test.go":                    source("pgregory.net/rapid"),
		"bus/bus.go":                     source("github.com/nats-io/nats.go/jetstream", module+"/proto/forge/v1"),
		"bus/match.go":                   source("github.com/nats-io/nats-server/v2/server"),
		"bus/match_test.go":              source("github.com/nats-io/nats-server/v2/server"),
		"bus/bustest/server.go":          source("github.com/nats-io/nats-server/v2/server"),
		"git/git.go":                     source("os/exec"),
		"git/busy.go":                    source("github.com/nats-io/nats.go"),
		"config/config.go":               source("gopkg.in/yaml.v3"),
		"service/run.go":                 source("os/exec", module+"/services/runner"),
		"service/run_test.go":            source("os/exec", "github.com/nats-io/nats-server/v2/server"),
		"services/runner/runner.go":      source(module, module+"/bus", module+"/services/runner/flow"),
		"services/runner/flow/clock.go":  source("time", "os", module+"/git"),
		"services/runner/flow/x_test.go": source("os", "pgregory.net/rapid", module+"/bus"),
		"services/reviewer/reviewer.go":  source(module + "/services/runner"),
		"cmd/pfl-forge/main.go":          source(module+"/services/runner", module+"/natsd"),
		"bin/stray.go":                   source("gopkg.in/yaml.v3"),
		".cache/stray.go":                source("gopkg.in/yaml.v3"),
		"git/testdata/stray.go":          source("gopkg.in/yaml.v3"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, violation := range violations(files, allowLists, restrictions) {
		fact, reason, _ := strings.Cut(violation, ": ")
		if reason == "" {
			t.Errorf("%s: no reason is given", fact)
		}
		got = append(got, strings.ReplaceAll(fact, module, ""))
	}
	want := []string{
		"bus/match.go imports github.com/nats-io/nats-server/v2/server",
		"config/config.go imports gopkg.in/yaml.v3",
		"doc.go imports /bus",
		"git/busy.go imports github.com/nats-io/nats.go",
		"service/run.go imports /services/runner",
		"service/run.go imports os/exec",
		"service/run_test.go imports github.com/nats-io/nats-server/v2/server",
		"services/reviewer/reviewer.go imports /services/runner",
		"services/runner/flow/clock.go imports /git",
		"services/runner/flow/clock.go imports os",
		"services/runner/flow/x_test.go imports /bus",
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func workspace(t *testing.T) []file {
	t.Helper()
	files, err := scan(os.DirFS(repository(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go file was found")
	}
	return files
}

// repository finds the root of the workspace from this package's folder.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
		t.Fatal(err)
	}
	return root
}
