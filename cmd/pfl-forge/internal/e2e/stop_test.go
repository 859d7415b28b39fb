package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// halves has a recipe that does one half of its work, and the other one only when the
// gate is open. Until then it waits in a process of its own.
func halves() map[string]string {
	return map[string]string{"pfl-forge.yaml": `
parallel_workers: 8
recipes:
  halves:
    tasks:
      - {name: a, run: sh half.sh a}
      - {name: b, run: sh half.sh b}
`, "half.sh": `
top=${PWD%/.forge/worktrees/*}
if test -f "$top/.forge/gate"; then echo "$1" >$1.txt; exit 0; fi
echo "$1" >$1.half
sleep 600 &
echo $! >"$top/.forge/new-$FORGE_TASK" && mv "$top/.forge/new-$FORGE_TASK" "$top/.forge/pid-$FORGE_TASK"
wait
`}
}

// processOf returns the process that a task waits in, once it does.
func (r *repo) processOf(task string) int {
	r.t.Helper()
	file := filepath.Join(r.dir, ".forge", "pid-"+task)
	wait.Until(r.t, task+" is at work", func() bool { return exists(file) })
	pid, err := strconv.Atoi(strings.TrimSpace(r.read(".forge/pid-" + task)))
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return pid
}

// stops gives a command, after which these processes have to be gone. How soon is measured
// by BenchmarkStop.
func (r *repo) stops(pids []int, args ...string) {
	r.t.Helper()
	r.must(0, args...)
	for _, pid := range pids {
		wait.Until(r.t, fmt.Sprintf("%v ends process %d", args, pid), func() bool { return syscall.Kill(pid, 0) != nil })
	}
}

// keeps fails the test unless a file that a task left is kept.
func (r *repo) keeps(task, file string) {
	r.t.Helper()
	intent := task[:strings.LastIndexByte(task, '-')]
	wait.Until(r.t, "what "+task+" left is kept", func() bool {
		for ref := range strings.FieldsSeq(r.git("for-each-ref", "--format=%(refname)", "refs/forge/"+intent+"/"+task)) {
			if strings.Contains(r.git("ls-tree", "-r", "--name-only", ref), file) {
				return true
			}
		}
		return false
	})
}

// Pause and cancel end agents, of a task, an intent or the project;
// the work is kept, and what is resumed goes on.
func TestStopped(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	r := newUnconfined(t, halves())
	run := r.start("run", "--watch")
	defer func() { run.signal(os.Interrupt); run.wait(130) }()
	r.must(0, "create", "work", "--title", "Work", "--recipe", "halves")
	r.must(0, "create", "drop", "--title", "Drop", "--recipe", "halves")
	one, two := r.processOf("work-001"), r.processOf("work-002")
	three, four := r.processOf("drop-001"), r.processOf("drop-002")

	r.stops([]int{one}, "pause", "work-001")
	r.stops([]int{two}, "pause", "work")
	r.stops([]int{three}, "cancel", "drop-001")
	r.stops([]int{four}, "pause", "--all")
	r.must(0, "resume", "--all")
	r.stops([]int{r.processOf("drop-002")}, "cancel", "drop")
	for task, half := range map[string]string{"work-001": "a.half", "work-002": "b.half", "drop-001": "a.half", "drop-002": "b.half"} {
		r.keeps(task, half)
	}

	r.write(".forge/gate", "")
	r.must(0, "resume", "work")
	wait.Until(t, "work is done", func() bool { return r.status().of("work") == "done" })
	if a, b := r.git("show", "main:a.txt"), r.git("show", "main:b.txt"); a != "a" || b != "b" {
		t.Errorf("the halves are %q and %q", a, b)
	}
	if got := r.status().of("drop"); got != "cancelled" {
		t.Errorf("drop is %s", got)
	}
}

// Everything at once.
func TestEverythingCancelled(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	r := newUnconfined(t, halves())
	run := r.start("run", "--watch")
	defer func() { run.signal(os.Interrupt); run.wait(130) }()
	r.must(0, "create", "work", "--title", "Work", "--recipe", "halves")
	r.must(0, "create", "rest", "--title", "Rest", "--recipe", "halves")
	var pids []int
	for _, task := range []string{"work-001", "work-002", "rest-001", "rest-002"} {
		pids = append(pids, r.processOf(task))
	}
	r.stops(pids, "cancel", "--all", "--yes", "--reason", "enough")
	for _, id := range []string{"work", "rest"} {
		wait.Until(t, id+" is cancelled", func() bool { return r.status().of(id) == "cancelled" })
	}
}

// BenchmarkStop measures how soon the processes of four agents are gone after the command
// that cancels them, which is less than the patience of a person, five seconds.
func BenchmarkStop(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		r := newUnconfined(b, halves())
		run := r.start("run", "--watch")
		var pids []int
		for _, id := range []string{"work", "rest"} {
			r.must(0, "create", id, "--title", id, "--recipe", "halves")
			pids = append(pids, r.processOf(id+"-001"), r.processOf(id+"-002"))
		}
		b.StartTimer()
		r.stops(pids, "cancel", "--all", "--yes", "--reason", "enough")
		b.StopTimer()
		run.signal(os.Interrupt)
		run.wait(130)
		b.StartTimer()
	}
}
