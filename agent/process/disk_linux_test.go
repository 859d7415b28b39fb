package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestDiskFiller has commands write many files, none of them large: one that writes more than it may is ended, told why, and
// another one goes on. What was there before, and what is read, does not count.
func TestDiskFiller(t *testing.T) {
	if !offered(t) {
		t.Skip("no sandbox can be made here: nothing is tried")
	}
	// Far less than a command may write by default, so that the test needs little of the disk.
	const limit = 16 << 20
	write := func(dir, name string, bytes int) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old := func(c *Command) { // a checkout is larger than what may be written to it
		path := write(c.Dir, "old", 2*limit)
		wait.Until(t, "the file is older than the command", func() bool {
			info, err := os.Stat(path)
			return err == nil && time.Since(info.ModTime()) > 2*time.Second
		})
	}
	// The times that files say they have are set back: nothing is hidden by that.
	const fill = `i=0; while [ $i -lt 64 ]; do head -c 1048576 /dev/zero >"$DIR/f$i"; touch -d 2001-01-01 "$DIR/f$i"; i=$((i+1)); done; echo filled; `
	for _, tt := range []struct{ name, dir string }{{"its directory", "."}, {"below it", "a/b"}, {"its home", "$HOME"}, {"a hidden folder", ".cache"}} {
		t.Run(tt.name, func(t *testing.T) {
			c := confined(t, strings.ReplaceAll("mkdir -p $DIR; "+fill+"exec sleep 20", "$DIR", tt.dir))
			c.Limits.DiskBytes = limit
			r, err := Run(t.Context(), c)
			if !errors.Is(err, ErrDisk) || r.ExitCode != -1 {
				t.Errorf("ended with %d, %v\n%s", r.ExitCode, err, r.Output)
			}
			if left := living(c.Dir); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
	t.Run("one that does not", func(t *testing.T) {
		c := confined(t, "cat old >/dev/null; head -c 1048576 /dev/zero >new; for i in 1 2 3 4 5 6 7 8 9; do ln new l$i; done; sleep 1; echo whole")
		old(&c)
		c.Limits.DiskBytes = limit / 4
		if r, err := Run(t.Context(), c); err != nil || string(r.Output) != "whole\n" {
			t.Errorf("ended with %d, %v\n%s", r.ExitCode, err, r.Output)
		}
	})
}

// TestDiskLimit: without a limit of its own a command may write what it leaves free, within bounds.
func TestDiskLimit(t *testing.T) {
	if n := diskLimit(t.TempDir()); n < diskFloor || n > diskCeiling {
		t.Errorf("got %d", n)
	}
	c := Command{Sandbox: &sandbox.Spec{Mounts: []sandbox.Mount{
		{Path: "/usr", Kind: sandbox.ReadOnly},
		{Path: "/w", Kind: sandbox.Writable},
		{Path: "/v", To: "/outside", Kind: sandbox.Writable},
		{Path: "/cache", To: "/layer", Kind: sandbox.Layered},
	}}}
	if got := strings.Join(c.writableFolders(), " "); got != "/w /outside /layer" {
		t.Errorf("looks at %q", got)
	}
}
