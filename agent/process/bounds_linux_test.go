package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/internal/demand"
)

// TestBoundsOfTheOperator has commands take more than their owner's bounds.
// What the command's own limits say goes before.
func TestBoundsOfTheOperator(t *testing.T) {
	const fill = "i=0; while [ $i -lt 48 ]; do head -c 1048576 /dev/zero >f$i; i=$((i+1)); done; echo filled; exec sleep 20"
	t.Run("disk", func(t *testing.T) {
		ownDisk(t, 160, 100000)
		c := confined(t, fill)
		c.Owner = c.Owner.Within(demand.Bounds{Disk: 16 << 20})
		if r, err := Run(t.Context(), c); !errors.Is(err, ErrDisk) {
			t.Errorf("ended with %d, %v\n%s", r.ExitCode, err, r.Output)
		}
		if n := DiskLimit(c.Dir, demand.Bounds{Disk: 16 << 20}); n != 16<<20 {
			t.Errorf("doctor would say %d", n)
		}
	})
	t.Run("memory", func(t *testing.T) {
		if MemoryLimit(demand.Bounds{}) == 0 || !offered(t) {
			t.Skip(noBomb)
		}
		const grow = "(x=$(head -c 300000000 /dev/zero | tr '\\0' a); echo has ${#x}); echo after"
		for _, tt := range []struct{ own, bound int64 }{{0, 150 << 20}, {150 << 20, 1 << 30}} {
			c := confined(t, grow)
			c.Limits.MemoryBytes, c.Owner = tt.own, c.Owner.Within(demand.Bounds{Memory: tt.bound})
			r, err := Run(t.Context(), c)
			if err != nil || strings.Contains(string(r.Output), "has 300000000") {
				t.Errorf("%+v: %d, %v\n%s", tt, r.ExitCode, err, r.Output)
			}
		}
		if n := MemoryLimit(demand.Bounds{Memory: 150 << 20}); n != 150<<20 {
			t.Errorf("doctor would say %d", n)
		}
	})
}

// TestWithoutControlGroups has commands run where no control group can be had: none is mounted,
// or a hierarchy of version 2 whose controllers are not passed on to us. There they run without
// a limit of memory; with a bound of the operator they do not run, and the error names it.
func TestWithoutControlGroups(t *testing.T) {
	for _, groups := range []string{"tmpfs", "cgroup2"} {
		t.Run(groups, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), "TEST_GROUPS="+groups, "TEST_WORK="+t.TempDir())
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			out, err := cmd.Output()
			if errors.Is(err, syscall.EPERM) {
				t.Skipf("mounting takes a right that this user has not: %v", err)
			}
			want := "bound 0, limit 0: \"ran\\n\", <nil>\nbound 1073741824, limit 0: \"\", " + errNoMemoryLimit.Error() + "\n"
			if got := string(out); err != nil || got != want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// withoutGroups is the other process of TestWithoutControlGroups.
func withoutGroups(kind string) {
	for _, err := range []error{
		unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
		unix.Mount("groups", "/sys/fs/cgroup", kind, 0, ""),
	} {
		if err != nil {
			_, _ = fmt.Fprintln(os.Stdout, err)
			os.Exit(1)
		}
	}
	dir := os.Getenv("TEST_WORK")
	for _, b := range []demand.Bounds{{}, {Memory: 1 << 30}} {
		c := Command{Path: "sh", Args: []string{"-c", "echo ran"}, Dir: dir, Env: Environment(dir), Owner: NewOwner(dir).Within(b)}
		r, err := Run(context.Background(), c)
		_, _ = fmt.Fprintf(os.Stdout, "bound %d, limit %d: %q, %v\n", b.Memory, MemoryLimit(b), r.Output, err)
	}
	os.Exit(0)
}

// TestGroupThatIsGone: a process that cannot be put into its group is not taken
// for one with a limit.
func TestGroupThatIsGone(t *testing.T) {
	g := &cgroup{dirs: []string{t.TempDir() + "/gone"}, limits: []string{memoryController}}
	if err := g.add(os.Getpid()); err == nil {
		t.Error("there is no error")
	}
	if err := (*cgroup)(nil).add(os.Getpid()); err != nil {
		t.Errorf("without a group: %v", err)
	}
}
