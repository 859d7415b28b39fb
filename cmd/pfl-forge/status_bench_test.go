package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
)

// BenchmarkStatus is how long a person waits for the list of 1,000 intents, from
// the start of the program to its end, when nothing else runs.
func BenchmarkStatus(b *testing.B) {
	dir := b.TempDir()
	fill(b, dir, 1000)
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		cmd := exec.Command(exe)
		cmd.Args = []string{"pfl-forge", "-C", dir, "status"}
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
}

// BenchmarkStart is what each start of the program costs in processor time, beside one of git:
// each command of a person is one, and each command that runs in a sandbox is two.
func BenchmarkStart(b *testing.B) {
	exe := filepath.Join(b.TempDir(), "pfl-forge")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", exe, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	used := func(name string) (sum time.Duration) {
		cmd := exec.Command(name, "version")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	var ours, git time.Duration
	for b.Loop() {
		ours += used(exe)
		git += used("git")
	}
	b.ReportMetric(float64(ours.Microseconds())/1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(ours)/float64(git), "x-git")
}

// fill submits intents in a new repository.
func fill(b *testing.B, dir string, n int) {
	b.Helper()
	for _, line := range [][]string{{"init", "-q", "-b", "main"}, {"-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, line...)...).CombinedOutput(); err != nil {
			b.Fatalf("git: %v: %s", err, out)
		}
	}
	ctx := b.Context()
	repo, err := local.OpenRepository(ctx, dir)
	if err != nil {
		b.Fatal(err)
	}
	s, err := local.Open(ctx, repo, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(ctx)
	var group errgroup.Group
	group.SetLimit(64)
	for i := range n {
		id := forge.IntentID(fmt.Sprintf("intent-%04d", i))
		group.Go(func() error {
			_, err := s.Bus.Submissions.Ask(ctx, forge.Event{ID: string(id), To: forge.Key{Project: repo.Project, Intent: id}, Message: &forge.Submit{
				Intent: forge.Intent{Settings: forge.Settings{Title: "Change something", Body: "As it says"}, Source: forge.SourceHuman},
			}})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}
