package e2e

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

const megabyte = 1e6

// BenchmarkIdle reports the memory that programs hold (resident, in MB) some
// seconds after their start, with nothing to do: pfl-forge run --watch, which
// holds all services and the server, and each program of a distributed set-up.
func BenchmarkIdle(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		r := newRepo(b, map[string]string{"a": "a\n"})
		ctx, cancel := context.WithCancel(b.Context())
		watch := exec.CommandContext(ctx, filepath.Join(bin, "pfl-forge"), "-C", r.dir, "run", "--watch")
		watch.Stdout, watch.Stderr = io.Discard, io.Discard
		if err := watch.Start(); err != nil {
			b.Fatal(err)
		}
		c := newCluster(b, map[string]string{"a": "a\n"})
		<-wait.Moment(rng, 5*time.Second, 6*time.Second) // that they have nothing to do is what is measured
		b.ReportMetric(resident(b, watch.Process.Pid), "run-watch-MB")
		for _, p := range c.procs {
			b.ReportMetric(resident(b, p.cmd.Process.Pid), p.name+"-MB")
		}
		cancel()
		_ = watch.Wait()
	}
}

func resident(b *testing.B, pid int) float64 {
	b.Helper()
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		b.Fatalf("process %d is gone: %v", pid, err)
	}
	kib, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib * 1024 / megabyte
}

// BenchmarkSize reports the size of each program, and without symbols (in MB).
func BenchmarkSize(b *testing.B) {
	for b.Loop() {
		stripped := b.TempDir() + string(filepath.Separator)
		args := append([]string{"build", "-ldflags", "-s -w", "-o", stripped}, programs()...)
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		built, err := os.ReadDir(stripped)
		if err != nil {
			b.Fatal(err)
		}
		for _, program := range built {
			name := program.Name()
			b.ReportMetric(size(b, filepath.Join(bin, name)), name+"-MB")
			b.ReportMetric(size(b, filepath.Join(stripped, name)), name+"-stripped-MB")
		}
	}
}

func size(b *testing.B, path string) float64 {
	b.Helper()
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return float64(info.Size()) / megabyte
}
