package kit

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCommandLines(t *testing.T) {
	for _, c := range []struct {
		by   Invocation
		dir  string
		args []string
		want string
	}{
		{Invocation{"pfl-forge", true}, "/tmp/d", []string{"run"}, "cd /tmp/d && pfl-forge run"},
		{Invocation{"pfl-forge", true}, "/tmp/a b", []string{"answer", "x", "1", "it's"}, `cd '/tmp/a b' && pfl-forge answer x 1 'it'\''s'`},
		{Invocation{"go run ./cmd/pfl-forge", false}, "/tmp/d", []string{"answer", "x", ""}, "go run ./cmd/pfl-forge -C /tmp/d answer x ''"},
		{Invocation{"pfl-forge", true}, "/tmp/$(d)", nil, "cd '/tmp/$(d)' && pfl-forge"},
	} {
		if got := c.by.Command(c.dir, c.args...); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestInvocation(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := ""
	a := &App{Getenv: func(string) string { return path }}
	dir := t.TempDir()
	if err := os.Symlink(exe, filepath.Join(dir, "pfl-forge")); err != nil {
		t.Fatal(err)
	}
	path = "/nowhere" + string(os.PathListSeparator) + dir
	if got := a.invocationOf(filepath.Join(dir, "pfl-forge")); got != (Invocation{"pfl-forge", true}) {
		t.Errorf("on the PATH: called as %+v", got)
	}
	path = "/nowhere"
	if got, want := a.invocationOf(filepath.Join(dir, "pfl-forge")), (Invocation{filepath.Join(dir, "pfl-forge"), true}); got != want {
		t.Errorf("elsewhere: called as %+v, want %+v", got, want)
	}
	for _, built := range []string{"/tmp/go-build1/b001/exe/pfl-forge", "/var/folders/go-build2/exe/pfl-forge"} {
		if got := a.invocationOf(built); got != (Invocation{"go run github.com/pfl-forge/pfl-forge/cmd/pfl-forge", false}) {
			t.Errorf("by go run: called as %+v", got)
		}
	}
}
