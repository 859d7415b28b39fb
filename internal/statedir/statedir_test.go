package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestDiskIsProbed: a disk that is full, slow or read-only makes a service unready, until it
// is mended; and it is not written to for every probe.
func TestDiskIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(t.TempDir())
		var writes atomic.Int32
		var err error
		d.write = func(string) error { writes.Add(1); return err }
		ask := func(want string) {
			t.Helper()
			got := d.Check(t.Context())
			if want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Error(), want)) {
				t.Errorf("got %v, want %q", got, want)
			}
		}
		for range 100 {
			ask("")
		}
		if n := writes.Load(); n != 1 {
			t.Errorf("%d writes for 100 probes", n)
		}
		err = syscall.ENOSPC
		ask("") // not asked again yet
		<-wait.Briefly(t, diskInterval).Done()
		ask("--state-dir (FORGE_STATE_DIR) cannot be used: no space left on device")
		err = nil
		<-wait.Briefly(t, diskInterval).Done()
		ask("")

		hang := make(chan struct{})
		d.write = func(string) error { writes.Add(1); <-hang; return nil }
		<-wait.Briefly(t, diskInterval).Done()
		writes.Store(0)
		for range 10 {
			ctx := wait.Briefly(t, time.Second)
			if err := d.Check(ctx); err == nil || !strings.Contains(err.Error(), "does not answer") {
				t.Errorf("got %v", err)
			}
		}
		if n := writes.Load(); n != 1 {
			t.Errorf("%d writes to a disk that hangs", n)
		}
		close(hang)
		synctest.Wait()
		ask("")
	})
}

// The real write: what it needs is asked of the disk, and nothing is left.
func TestDiskProbeWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := New(dir).Check(t.Context()); err != nil {
		t.Error(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 || list[0].Name() != markFile {
		t.Errorf("%v is left, %v", list, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(filepath.Join(file, "state")).Check(t.Context()); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a state directory in a file: %v", err)
	}
}

// TestAnotherDirectoryIsNoticed: where the state directory is gone, what takes
// its place can be written to, and has no clones. So the replica stays unwell
// until it has its own again, or is started anew.
func TestAnotherDirectoryIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	d := New(dir)
	ask := func(d *Disk, want string) {
		t.Helper()
		if err := d.Answer(t.Context(), true); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	ask(d, "")
	ask(New(dir), "") // a second process, which waits for the end of this one
	ask(d, "")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	ask(d, "what was in it is gone: start the service again")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("an empty one is made in its place: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ask(d, "what was in it is gone: start the service again")
	ask(New(dir), "") // of the next process
	ask(d, "what was in it is gone")
	if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+".away", dir)); err != nil {
		t.Fatal(err)
	}
	ask(d, "")
}
