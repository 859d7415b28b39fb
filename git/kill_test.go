package git_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// The test binary is also the process that gets killed.
func TestMain(m *testing.M) {
	if do := victims[os.Getenv("PFL_FORGE_VICTIM")]; do != nil {
		do(os.Args[1], os.Args[2:])
		return
	}
	wait.Beside()
	os.Exit(m.Run())
}

// victims are what the process does with a repository until it is killed.
var victims = map[string]func(dir string, args []string){
	"merge": victimMerges,
	"work":  func(dir string, args []string) { victimWorks(dir, args[0]) },
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// victimMerges moves main along a chain of commits, from where it is.
func victimMerges(dir string, chain []string) {
	ctx := context.Background()
	s, err := store.OpenLocal(ctx, store.LocalConfig{Path: dir})
	fatal(err)
	for i := range len(chain) - 1 {
		_, err := s.Merge(ctx, "main", git.OID(chain[i]), git.OID(chain[i+1]))
		fatal(err)
	}
}

// victimWorks does task after task and prints what it collected.
func victimWorks(dir, pool string) {
	ctx := context.Background()
	s, err := store.OpenLocal(ctx, store.LocalConfig{Path: dir})
	fatal(err)
	p, err := checkout.NewPool(ctx, checkout.PoolConfig{Dir: pool, Store: s})
	fatal(err)
	head, err := s.Head(ctx, "main")
	fatal(err)
	for i := 0; ; i++ {
		task := git.Name(fmt.Sprintf("t%d", i%3))
		c, err := p.Prepare(ctx, task, head)
		fatal(err)
		fatal(os.WriteFile(filepath.Join(c.Dir(), "f1"), []byte(fmt.Sprint(os.Getpid(), i)), 0o600))
		_, err = c.CommitAll(ctx, "work", git.Identity{})
		fatal(err)
		_, err = c.Collect(ctx, store.Attempt{Intent: "intent", Task: task, Number: 1}) // sees what was committed, and no more
		fatal(err)
		fatal(os.WriteFile(filepath.Join(c.Dir(), "left"), []byte(fmt.Sprint(i)), 0o600))
		got, err := c.Collect(ctx, store.Attempt{Intent: "intent", Task: task, Number: 1})
		fatal(err)
		fmt.Println(got.Ref, got.Head)
		fmt.Println(store.Attempt{Intent: "intent", Task: task, Number: 1}.LeftoverRef(got.Leftover), got.Leftover)
		switch i % 3 {
		case 0:
			fatal(c.Release())
		case 1:
			fatal(c.Park())
		}
	}
}

type victim struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startVictim(t *testing.T, what string, args ...string) victim {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "PFL_FORGE_VICTIM="+what)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return victim{cmd: cmd, lines: bufio.NewScanner(out)}
}

// kill ends the process without warning, with its git children if they are to die too.
func (v victim) kill(withChildren bool) {
	if withChildren {
		_ = v.cmd.Process.Signal(syscall.SIGSTOP) // it must not see them go
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", v.cmd.Process.Pid))
		for _, file := range tasks {
			b, _ := os.ReadFile(file)
			for pid := range strings.FieldsSeq(string(b)) {
				if n, err := strconv.Atoi(pid); err == nil {
					if p, err := os.FindProcess(n); err == nil {
						_ = p.Kill()
					}
				}
			}
		}
	}
	_ = v.cmd.Process.Kill()
}

// Killed at any moment, with or without its git, the branch is at one of the commits, and the
// person's files are those of that commit, with the person's own changes, after the next opening.
func TestKilledMerge(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	const length, files = 6, 120
	rounds := testsize.Of(3, 12)
	rng := rand.New(rand.NewPCG(1, 2))
	r := newRepo(t, map[string]string{"mine": "mine\n"})
	work := r.at(filepath.Join(t.TempDir(), "work"))
	r.git("worktree", "add", "-q", "--detach", work.dir, "main")
	chain := []string{string(r.head("main"))}
	for n := range length {
		for i := range files {
			work.write(fmt.Sprintf("d%d/f%d", i%7, i), fmt.Sprintf("%d %d\n%s", n, i, strings.Repeat("x", 2000)))
		}
		work.write(fmt.Sprintf("new%d/f", n), "new\n")
		if n > 0 {
			must(t, os.RemoveAll(filepath.Join(work.dir, fmt.Sprintf("new%d", n-1))))
		}
		work.git("add", "-A")
		work.git("commit", "-qm", fmt.Sprint(n))
		chain = append(chain, string(work.head("HEAD")))
	}
	r.git("worktree", "remove", "--force", work.dir)
	r.write("mine", "my own work\n")
	r.write("untracked", "my own file\n")
	const status = " M mine\n?? untracked"
	torn := 0
	for round := range rounds {
		if string(r.head("main")) == chain[length] {
			r.git("stash", "-q")
			r.git("reset", "-q", "--hard", chain[0])
			r.git("stash", "pop", "-q")
		}
		v := startVictim(t, "merge", append([]string{r.dir}, chain[at(chain, r.head("main")):]...)...)
		moment := wait.Moment(rng, 20*time.Millisecond, 200*time.Millisecond)
		go func() { <-moment; v.kill(round%2 == 0) }()
		_ = v.cmd.Wait()
		if exists(filepath.Join(r.dir, ".git", "pfl-forge", "move.json")) {
			torn++
		}
		r.age("HEAD.lock", "refs/heads/main.lock")
		r.store()
		if at(chain, r.head("main")) < 0 || r.git("status", "--porcelain") != status || r.read("mine") != "my own work\n" {
			t.Fatalf("round %d, main at %d:\n%s", round, at(chain, r.head("main")), r.git("status", "--porcelain"))
		}
		r.noLocks()
	}
	t.Logf("%d of %d kills left a move unfinished", torn, rounds)
	r.git("fsck", "--strict")
}

// age makes lock files look as if their makers had been gone for long.
func (r repo) age(locks ...string) {
	long := time.Now().Add(-time.Hour)
	for _, l := range locks {
		_ = os.Chtimes(filepath.Join(r.dir, ".git", l), long, long)
	}
}

func at(chain []string, o git.OID) int {
	for i, c := range chain {
		if c == string(o) {
			return i
		}
	}
	return -1
}

// Killed while it prepares, commits and collects: what it reported is kept, and
// the next process goes on.
func TestKilledWork(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	rng := rand.New(rand.NewPCG(3, 4))
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("f%d", i)] = strings.Repeat("x\n", 100)
	}
	r := newRepo(t, files)
	dir := filepath.Join(t.TempDir(), "w")
	reported := 0
	for round := range testsize.Of(4, 8) {
		v := startVictim(t, "work", r.dir, dir)
		var lines []string
		kill := func() {
			moment := wait.Moment(rng, 100*time.Millisecond, 400*time.Millisecond)
			go func() { <-moment; v.kill(round%2 == 0) }()
		}
		begun := round%3 > 0 // it is killed at any time after the first report; else at any time
		if !begun {
			kill()
		}
		for v.lines.Scan() {
			if lines = append(lines, v.lines.Text()); begun && len(lines) == 1 {
				kill()
			}
		}
		_ = v.cmd.Wait()
		for _, line := range lines {
			ref, o, ok := strings.Cut(line, " ")
			if !ok || string(r.head(ref)) != o {
				t.Fatalf("reported %q, kept %s", line, r.head(ref))
			}
			reported++
		}
		p := poolAt(t, r.store(), dir)
		for _, name := range []string{"t0", "t1", "t2", "other"} {
			if _, agent := prepare(t, p, name, r.head("main")); agent.git("status", "--porcelain", "--ignored") != "" {
				t.Fatalf("round %d: %s is not clean", round, name)
			}
		}
		must(t, p.Sweep(func(string) bool { return false }))
		must(t, p.Close())
	}
	if reported == 0 {
		t.Fatal("killed too early, always")
	}
	if out := r.git("fsck", "--strict"); strings.Contains(out, "error") || r.git("status", "--porcelain") != "" {
		t.Fatal(out)
	}
}
