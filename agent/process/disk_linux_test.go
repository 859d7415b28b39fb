package process

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// ownDisk has what the test writes on a disk of its own, so that nothing else
// makes or takes room there.
func ownDisk(t *testing.T, mebibytes, inodes int) {
	t.Helper()
	if !offered(t) {
		t.Skip("no sandbox can be made here: nothing is tried")
	}
	dir := testdir.New(t)
	if err := unix.Mount("disk", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,nr_inodes=%d,mode=0755", mebibytes, inodes)); err != nil {
		t.Skipf("mounting takes a right that this user has not: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("TMPDIR", dir)
}

// TestDiskFiller has commands write many files, none of them large: one that
// writes more than it may is ended, told why, and another one goes on. What was
// there before, and what is read, does not count.
func TestDiskFiller(t *testing.T) {
	ownDisk(t, 160, 100000)
	// Far less than a command may write by default, so that the test needs little of the disk.
	const limit = 16 << 20
	const deep = "n=$(printf '%0200d' 0); i=0; while [ $i -lt 25 ]; do mkdir $n; cd $n; i=$((i+1)); done; DIR=.; "
	// The times that files say they have are set back: nothing is hidden by that.
	const fill = `i=0; while [ $i -lt 64 ]; do head -c 1048576 /dev/zero >"$DIR/f$i"; touch -d 2001-01-01 "$DIR/f$i"; i=$((i+1)); done; ` +
		"echo filled; exec sleep 20"
	for _, tt := range []struct{ name, begin string }{
		{"its directory", "DIR=.; "},
		{"below it", "DIR=a/b; mkdir -p $DIR; "},
		{"its home", "DIR=$HOME; "},
		{"a hidden folder", "DIR=.cache; mkdir $DIR; "},
		{"a path that the kernel does not take", deep},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := confined(t, tt.begin+fill)
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
	t.Run("directories without end", func(t *testing.T) {
		c := confined(t, fmt.Sprintf("head -c %d /dev/zero >new; i=0; while [ $i -le %d ]; do mkdir d; cd d; i=$((i+1)); done; exec sleep 20",
			limit-1<<20, deepest))
		c.Limits.DiskBytes = limit
		if r, err := Run(t.Context(), c); !errors.Is(err, ErrDisk) {
			t.Errorf("ended with %d, %v\n%s", r.ExitCode, err, r.Output)
		}
	})
	t.Run("one that does not", func(t *testing.T) {
		c := confined(t, fmt.Sprintf("cat old >/dev/null; head -c %d /dev/zero >new; for i in 1 2 3 4 5 6 7 8 9; do ln new l$i; done; "+
			"sleep 1; echo whole", limit-1<<20))
		path := filepath.Join(c.Dir, "old") // a checkout is larger than what may be written to it
		if err := os.WriteFile(path, make([]byte, 2*limit), 0o600); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the file is older than the command", func() bool {
			info, err := os.Stat(path)
			return err == nil && time.Since(info.ModTime()) > 2*time.Second
		})
		c.Limits.DiskBytes = limit
		if r, err := Run(t.Context(), c); err != nil || string(r.Output) != "whole\n" {
			t.Errorf("ended with %d, %v\n%s", r.ExitCode, err, r.Output)
		}
	})
}

// TestDirectoriesWithoutAMode: a command hides nothing from the look by
// directories that their owner may not read or search. Root may read all, so
// the look is that of a thread without the right to.
func TestDirectoriesWithoutAMode(t *testing.T) {
	ownDisk(t, 64, 10000)
	c := confined(t, "")
	c.Limits.DiskBytes = 16 << 20
	before, since := roomOf(c.Dir), time.Now().Add(-time.Second)
	modes := map[string]os.FileMode{"write": 0o300, "write/none": 0, "write/none/list": 0o600, "write/none/list/search": 0o100}
	names := slices.Sorted(maps.Keys(modes))
	for _, name := range names {
		if err := os.Mkdir(filepath.Join(c.Dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.Dir, name, "big"), make([]byte, 5<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Backward(names) {
		if err := os.Chmod(filepath.Join(c.Dir, name), modes[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(c.Dir, 0o300); err != nil { // the folder itself, too
		t.Fatal(err)
	}
	var found error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // it ends with this goroutine
		if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &(&[2]unix.CapUserData{})[0]); err != nil {
			found = err
			return
		}
		if _, err := os.ReadDir(filepath.Join(c.Dir, "write")); !errors.Is(err, os.ErrPermission) {
			t.Errorf("the thread may read: %v", err)
		}
		found = c.looksAtDisk(t.Context(), c.Dir, before, since, true)
	}()
	<-done
	if !errors.Is(found, ErrDisk) || !strings.Contains(found.Error(), "20 MiB and more") {
		t.Errorf("got %v", found)
	}
	modes["."] = 0o300
	for name, mode := range modes { // what the command sees is as it was
		if info, err := os.Stat(filepath.Join(c.Dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
}

// TestFullDisk: when the disk has nearly nothing left, of bytes or of inodes, a
// command ends as if the machine had gone, however it hides what it writes. One
// that finds the disk like that goes on: a small test does not fail for it.
func TestFullDisk(t *testing.T) {
	ownDisk(t, 64, 2000)
	for _, tt := range []struct{ name, script string }{
		{"a file without a name", "exec 3>f; rm f; head -c 66000000 /dev/zero >&3; exec sleep 20"},
		{"empty files", "i=0; while [ $i -lt 1950 ]; do : >f$i; i=$((i+1)); done; exec sleep 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := confined(t, tt.script)
			if r, err := Run(t.Context(), c); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "disk is full") {
				t.Errorf("ended with %d, %v\n%s", r.ExitCode, err, r.Output)
			}
		})
	}
	t.Run("full before", func(t *testing.T) {
		c := confined(t, "sleep 1; echo small >new; cat new")
		if err := os.WriteFile(filepath.Join(c.Dir, "full"), make([]byte, 63<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Run(t.Context(), c); err != nil || string(r.Output) != "small\n" {
			t.Errorf("ended with %d, %v\n%s", r.ExitCode, err, r.Output)
		}
	})
}

// TestDiskLimit: without a limit of its own a command may write what it leaves free, within bounds.
func TestDiskLimit(t *testing.T) {
	t.Parallel()
	if n := roomOf(t.TempDir()).allows(); n < diskFloor || n > diskCeiling {
		t.Errorf("got %d", n)
	}
	c := Command{Sandbox: &sandbox.Spec{Mounts: []sandbox.Mount{
		{Path: "/usr", Kind: sandbox.ReadOnly},
		{Path: "/w", Kind: sandbox.Writable},
		{Path: "/home", To: "/w/home", Kind: sandbox.Writable},
		{Path: "/tmp", To: "/w/home/../tmp", Kind: sandbox.Writable},
		{Path: "/w2", Kind: sandbox.Writable},
		{Path: "/again", To: "/w2/", Kind: sandbox.Writable},
		{Path: "/v", To: "/outside", Kind: sandbox.Writable},
		{Path: "/cache", To: "/layer", Kind: sandbox.Layered},
	}}}
	if got := strings.Join(c.writableFolders(), " "); got != "/layer /outside /w /w2" {
		t.Errorf("looks at %q", got)
	}
}
