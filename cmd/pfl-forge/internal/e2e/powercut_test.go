//go:build powercut

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// disk is a small disk of its own, whose content can be copied at one moment, as a power
// cut leaves it: with everything that the file system has given to the disk, and nothing
// that is still in memory. It is an ext4 in a file; the file is on an XFS, which clones a
// file between two writes. It takes root, mkfs.ext4 and mkfs.xfs.
type disk struct {
	t     *testing.T
	image string
	dir   string // where it is mounted
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	base := t.TempDir()
	outer, cellar := filepath.Join(base, "outer.img"), filepath.Join(base, "cellar")
	d := &disk{t: t, image: filepath.Join(cellar, "disk.img"), dir: filepath.Join(base, "disk")}
	for _, dir := range []string{cellar, d.dir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.do("truncate", "-s", "2G", outer)
	d.do("mkfs.xfs", "-q", "-m", "reflink=1", outer)
	d.do("mount", "-o", "loop", outer, cellar)
	t.Cleanup(func() { d.do("umount", "-l", cellar) }) // the disk's loop device lets go of it a moment later
	d.do("truncate", "-s", "300M", d.image)
	d.do("mkfs.ext4", "-q", d.image)
	d.mount(d.image)
	return d
}

func (d *disk) do(name string, args ...string) {
	d.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
}

// mount replaces what is mounted.
func (d *disk) mount(image string) {
	d.t.Helper()
	d.do("mount", "-o", "loop", image, d.dir)
	d.t.Cleanup(func() { _ = exec.Command("umount", d.dir).Run() })
}

// cut returns the disk as a power cut would leave it now.
func (d *disk) cut(n int) string {
	d.t.Helper()
	to := fmt.Sprintf("%s.%d", d.image, n)
	d.do("cp", "--reflink=always", d.image, to)
	return to
}

// TestPowerCut takes images of the disk while intents are submitted and worked on. On
// each of them everything is there that had been accepted, and what was on main, and one
// more run brings the rest there, each change once.
func TestPowerCut(t *testing.T) {
	testsize.OnlyFull(t)
	d := newDisk(t)
	t.Setenv("TMPDIR", d.dir)
	t.Run("cuts", func(t *testing.T) { cutPower(t, d) }) // its temporary directory is on the disk
}

func cutPower(t *testing.T, d *disk) {
	t.Helper()
	r := newRepo(t, appending)
	if !strings.HasPrefix(r.dir, d.dir) {
		t.Fatalf("%s is not on the disk", r.dir)
	}
	d.do("sync", "-f", d.dir)
	run := r.command(context.Background(), "run", "--watch")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	accepted := []string{}
	stop := make(chan struct{})
	var submitting sync.WaitGroup
	submitting.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			line := fmt.Sprintf("line-%03d", i)
			create := r.command(context.Background(), "create", fmt.Sprintf("append-%03d", i), "--title", line, "--body", "Please.",
				"--recipe", "append", "--with", "LINE="+line)
			if out, err := create.CombinedOutput(); err != nil {
				t.Errorf("create %d: %v\n%s", i, err, out)
				return
			}
			mu.Lock()
			accepted = append(accepted, line)
			mu.Unlock()
		}
	})

	type cut struct {
		image    string
		accepted []string
		main     string
	}
	var cuts []cut
	rng := rand.New(rand.NewPCG(5, 6))
	for n := range 8 {
		<-wait.Moment(rng, 300*time.Millisecond, time.Second)
		main := r.git("rev-parse", "main")
		mu.Lock()
		have := slices.Clone(accepted)
		mu.Unlock()
		cuts = append(cuts, cut{d.cut(n), have, main})
	}
	close(stop)
	submitting.Wait()
	_ = run.Process.Signal(syscall.SIGINT)
	_ = run.Wait()

	for n, c := range cuts {
		d.do("umount", d.dir)
		d.mount(c.image)
		before := strings.Fields(r.git("show", "main:log.txt"))
		if out, err := r.tryGit("merge-base", "--is-ancestor", c.main, "main"); err != nil {
			t.Errorf("cut %d: what was on main is not any more: %v %s", n, err, out)
		}
		out := r.must(0, "run")
		got := strings.Fields(r.git("show", "main:log.txt"))
		for _, line := range c.accepted {
			if !slices.Contains(got, line) {
				t.Errorf("cut %d: %s had been accepted, and is not on main\n%s", n, line, out.stderr)
			}
		}
		slices.Sort(got)
		if once := slices.Compact(slices.Clone(got)); len(once) != len(got) || len(r.subjects()) != len(got) {
			t.Errorf("cut %d: %d commits for %v; each line has to be there once", n, len(r.subjects()), got)
		}
		if status := r.git("status", "--porcelain", "--untracked-files=no"); status != "" {
			t.Errorf("cut %d: the files did not follow:\n%s", n, status)
		}
		t.Logf("cut %d: %d accepted, %d on main; %d after the next run", n, len(c.accepted), len(before)-1, len(got)-1)
		r.tidy()
	}
}
