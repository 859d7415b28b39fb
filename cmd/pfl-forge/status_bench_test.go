package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/internal/claimtest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// BenchmarkStatus is how long a person waits for the list of 1,000 intents, from
// the start of the program to its end, when nothing else runs.
func BenchmarkStatus(b *testing.B) {
	dir := b.TempDir()
	initRepository(b, dir)
	decided(b, dir, func(s *local.Session) { submit(b, s, "intent", 1000) })
	for b.Loop() {
		pflForge(b, dir, "status")
	}
}

var statusIntents = flag.Int("status.intents", 10000, "how many intents BenchmarkStatusOfMany lists; making them takes minutes")

// BenchmarkStatusOfMany is BenchmarkStatus for 10,000 intents, of which nine
// tenths are done and the others open, with their files in .forge: the page that a
// terminal shows, everything, and what each filter leaves. x-thousand is the time
// beside that of the same command in a repository with a tenth of them, in turn.
func BenchmarkStatusOfMany(b *testing.B) {
	many, few := b.TempDir(), b.TempDir()
	worked(b, many, *statusIntents)
	worked(b, few, *statusIntents/10)
	for _, args := range []string{
		"--limit 40", "--limit 0", "--status executing", "--label api", "--type fix", "--requester alice", "--since 1h", "--limit 40 -o json",
	} {
		b.Run(strings.ReplaceAll(args, " ", "_"), func(b *testing.B) {
			line := append([]string{"status"}, strings.Fields(args)...)
			var ten, one time.Duration
			for b.Loop() {
				ten += pflForge(b, many, line...)
				one += pflForge(b, few, line...)
			}
			b.ReportMetric(float64(ten.Microseconds())/1000/float64(b.N), "ms/status")
			b.ReportMetric(float64(ten)/float64(one), "x-thousand")
		})
	}
}

// pflForge runs the program in a repository, and returns how long it took.
func pflForge(b *testing.B, dir string, args ...string) time.Duration {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"pfl-forge", "-C", dir}, args...)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return time.Since(began)
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

// initRepository makes a repository with a commit.
func initRepository(b *testing.B, dir string) {
	b.Helper()
	for _, line := range [][]string{{"init", "-q", "-b", "main"}, {"-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, line...)...).CombinedOutput(); err != nil {
			b.Fatalf("git: %v: %s", err, out)
		}
	}
}

// decided does something in a session that decides.
func decided(b *testing.B, dir string, do func(*local.Session)) {
	b.Helper()
	repo, err := local.OpenRepository(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	s, err := local.Open(b.Context(), repo, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	do(s)
}

// submit asks for n intents. Every tenth has a label, every fourth a type, and
// every other one is alice's.
func submit(b *testing.B, s *local.Session, name string, n int) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(64)
	for i := range n {
		id := forge.IntentID(fmt.Sprintf("%s-%04d", name, i))
		in := forge.Intent{Settings: forge.Settings{Title: "Change something", Body: "As it says"}, Source: forge.SourceHuman}
		if i%10 == 0 {
			in.Labels = []string{"api"}
		}
		if i%4 == 0 {
			in.Type = "fix"
		}
		group.Go(func() error {
			to := forge.Key{Project: s.Repo.Project, Intent: id}
			by := []string{"alice", "bob"}[i%2]
			_, err := s.Bus.Submissions.Ask(b.Context(), forge.Event{ID: string(id), To: to, Actor: by, Message: &forge.Submit{Intent: in}})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// worked makes a repository with n intents, of which nine tenths are done.
func worked(b *testing.B, dir string, n int) {
	b.Helper()
	open := n / 10
	done := n - open
	initRepository(b, dir)
	decided(b, dir, func(s *local.Session) {
		ctx, stop := context.WithCancel(b.Context())
		var workers sync.WaitGroup
		for _, step := range forge.Steps() {
			workers.Go(func() { succeed(ctx, s.Bus, step) })
		}
		submit(b, s, "done", done)
		allDone(b, s, done)
		stop()
		workers.Wait()
	})
	pflForge(b, dir, "run") // has nothing to do, and writes the files
	decided(b, dir, func(s *local.Session) { submit(b, s, "open", open) })
}

// allDone returns when so many intents are done.
func allDone(b *testing.B, s *local.Session, n int) {
	b.Helper()
	ctx, moved := wait.WhileMoving(b)
	over := map[forge.IntentID]bool{}
	err := s.Bus.Journal.Follow(ctx, s.Repo.Project, 0, journal.Follower{Record: func(key forge.Key, _ uint64, rec forge.Record) error {
		moved()
		if over[key.Intent] = rec.Summary.Status == forge.StatusDone && rec.Summary.Idle; !over[key.Intent] {
			delete(over, key.Intent)
		}
		if len(over) == n {
			return errAllDone
		}
		return nil
	}})
	if !errors.Is(err, errAllDone) {
		b.Fatalf("%d of %d are done: %v", len(over), n, err)
	}
}

var errAllDone = errors.New("all are done")

// succeed takes the commands of a step, and answers as if everything had gone well, until ctx ends.
func succeed(ctx context.Context, conn *bus.Bus, step forge.Step) {
	const commit = "0123456789012345678901234567890123456789"
	_ = conn.Commands.Consume(ctx, work.Config{Step: step, Replica: "noop", Parallel: 64}, func(ctx context.Context, j *work.Job) error {
		c := &j.Command
		r := forge.Result{To: c.To, Attempt: c.Attempt, Replica: "noop"}
		switch step {
		case forge.StepAnalyze:
			r.Output = &forge.Analysis{Risk: forge.RiskLow, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
		case forge.StepImplement:
			r.Output = &forge.Implementation{Base: commit, Head: commit, Commits: 1, Files: []string{string(c.Task.ID)}}
		case forge.StepRebase:
			r.Output = &forge.Rebase{Base: commit, Head: commit, Tree: commit, PatchID: commit, Files: []string{string(c.Task.ID)}}
		case forge.StepReview:
			r.Output = &forge.Review{TaskID: c.Task.ID, Head: c.Task.Head, Verdict: forge.VerdictApproved, Claims: claimtest.Met(c.Task.Required())}
		case forge.StepMerge:
			r.Output = &forge.MergeResult{Outcome: forge.MergeDone, Commit: commit, Parent: commit, Tree: commit}
		default:
			r.Output = &forge.Reflection{}
		}
		return conn.Results.Publish(ctx, r)
	})
}
