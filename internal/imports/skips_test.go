package imports

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// skipping are the files whose tests may be skipped, and what the machine lacks
// then. In CI, which has all of it, a skipped test is a failure; so a test that
// has nothing to do for some of its cases leaves those out.
var skipping = map[string]string{
	"agent/agenttest/cli.go":                                 "an agent CLI",
	"agent/process/bounds_linux_test.go":                     "a sandbox, or the right to mount",
	"agent/process/delegated_linux_test.go":                  "control groups of version 2",
	"agent/process/disk_linux_test.go":                       "a sandbox, or the right to mount",
	"agent/process/executor_test.go":                         "a sandbox",
	"agent/process/memory_linux_test.go":                     "bounds of memory",
	"agent/remote/remotetest/remotetest_linux.go":            "a sandbox",
	"cmd/pfl-forge/internal/e2e/disk_linux_test.go":          "the right to mount",
	"cmd/pfl-forge/internal/e2e/disk_test.go":                "Linux",
	"cmd/pfl-forge/internal/outside/console_access_test.go":  "axe-core",
	"cmd/pfl-forge/internal/outside/console_browser_test.go": "Chromium",
	"forgedir/edits/edits_test.go":                           "an input of the fuzzer that is none",
	"git/mounts_linux_test.go":                               "the right to mount",
	"internal/testsize/testsize.go":                          "time",
	"jobs/bounds_linux_test.go":                              "a sandbox, or the right to mount",
	"jobs/cache_test.go":                                     "a sandbox",
	"jobs/confine_test.go":                                   "a sandbox",
	"jobs/granted_test.go":                                   "a sandbox",
	"jobs/private_test.go":                                   "a sandbox",
}

var skip = regexp.MustCompile(`\b(t|tb|b|f)\.Skip(f|Now)?\(`)

// TestSkips checks that a test is skipped only where the machine lacks something.
func TestSkips(t *testing.T) {
	found, err := skipsIn(os.DirFS(repository(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		if skipping[file] == "" {
			t.Errorf("%s skips a test, which fails in CI: leave out the case that has nothing to do", file)
		}
	}
	for file := range skipping {
		if !slices.Contains(found, file) {
			t.Errorf("%s skips no test: take it out of the list", file)
		}
	}
}

// The check itself, on files that skip and that do not.
func TestSkipsIn(t *testing.T) {
	found, err := skipsIn(fstest.MapFS{
		"a_test.go": {Data: []byte("package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Skip() }\n")},
		"b_test.go": {Data: []byte("package p\n\nfunc f(rt *rapid.T) { rt.Skip() }\n")},
		"c.go":      {Data: []byte("package p\n\nimport \"testing\"\n\nfunc need(t testing.TB) { t.Skipf(\"no %s\", \"x\") }\n")},
		"d.go":      {Data: []byte("package p\n\nfunc (t T) f() { t.Skip() }\n")},
	})
	if err != nil || !slices.Equal(found, []string{"a_test.go", "c.go"}) {
		t.Errorf("%v, %v", found, err)
	}
}

// skipsIn lists the files of tests, and of what tests share, that skip one.
func skipsIn(root fs.FS) ([]string, error) {
	files, err := scan(root)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, f := range files {
		if !f.test && !slices.Contains(f.imports, "testing") {
			continue
		}
		text, err := fs.ReadFile(root, f.path)
		if err != nil {
			return nil, err
		}
		if skip.Match(text) && !strings.HasSuffix(f.path, "internal/imports/skips_test.go") {
			found = append(found, f.path)
		}
	}
	slices.Sort(found)
	return found, nil
}
