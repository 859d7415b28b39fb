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

// waiting is a project whose recipes wait: for a file of the test, for answers, or
// for approval.
func waiting(gate string) map[string]string {
	return map[string]string{".gitignore": "/.forge/\n", "pfl-forge.yaml": `recipes:
  gated:
    params: [{name: GATE, default: ` + gate + `}]
    run: |
      echo part > "$FORGE_INTENT.part"
      echo $$ > "$GATE.$FORGE_INTENT" && mv "$GATE.$FORGE_INTENT" "$GATE.$FORGE_INTENT.$FORGE_ATTEMPT"
      until test -e "$GATE"; do sleep 0.02; done
      mv "$FORGE_INTENT.part" "$FORGE_INTENT.txt"
  ask:
    params: [{name: WHO, question: 'Who?'}, {name: WHY, question: 'Why?'}]
    run: echo "$WHO, $WHY" > "$FORGE_INTENT.txt"
  risky: {risk: med, run: 'echo x > "$FORGE_INTENT.txt"'}
  good: {run: 'echo x > "$FORGE_INTENT.txt"'}
`}
}

// Two runs in one repository: the second one says who is at work, and shows it, or
// refuses.
func TestTwoRuns(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	r := newUnconfined(t, waiting(gate))
	r.draft("slow", "recipe: gated")
	first := r.start("run")
	first.until("the recipe runs", func() bool { return exists(gate + ".slow.1") })
	holder := fmt.Sprintf("already running (process %d, since ", first.cmd.Process.Pid)
	refused := r.must(1, "run", "--no-join")
	contains(t, "the second run", refused.stderr, holder)
	second := r.start("run")
	second.until("the second run has joined", func() bool { return strings.Contains(second.stderr.String(), holder) })
	r.must(0, "create", "late", "-t", "Late", "--recipe", "good")
	write(t, gate, "")
	for _, run := range []*running{first, second} {
		contains(t, "a run", run.wait(0).stdout, "2 done")
	}
	if n := len(r.subjects()); n != 3 {
		t.Errorf("main has %v", r.subjects())
	}
	r.must(0, "run", "--no-join")
	r.tidy()
}

// Everything that a person can do, while a run goes on in another terminal.
func TestCommandsDuringRun(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	r := newUnconfined(t, waiting(gate))
	r.draft("slow", "recipe: gated")
	r.draft("unwanted", "recipe: gated")
	r.draft("ask", "recipe: ask")
	r.draft("ask-in-file", "recipe: ask\nwith: {WHY: because}")
	r.draft("risky", "recipe: risky")
	r.draft("risky-in-file", "recipe: risky")
	r.draft("no", "recipe: risky")
	run := r.start("run")
	run.until("the recipes run", func() bool { return exists(gate+".slow.1") && exists(gate+".unwanted.1") })
	run.until("five wait for a person", func() bool { return len(r.inbox()) == 5 })
	s := r.status()
	if s.of("slow") != "executing" || s.of("ask") != "proposed" || s.of("risky") != "proposed" {
		t.Errorf("the status is %+v", s)
	}
	contains(t, "show", r.must(0, "show", "slow").stdout, "executing", "slow-001")

	decideAll(r)
	pid := number(t, gate+".unwanted.1")
	run.until("the cancelled agent is gone", func() bool { return syscall.Kill(pid, 0) != nil })
	run.until("what was decided is done", func() bool {
		s := r.status()
		return s.of("ask") == "done" && s.of("ask-in-file") == "done" && s.of("risky") == "done" && s.of("risky-in-file") == "done"
	})
	r.wantStatus("executing", "slow")
	write(t, gate, "")
	run.wait(0)
	checkDecided(r)
}

// The same without a run: it is decided at once, and done by the next run.
func TestCommandsWithoutRun(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	r := newUnconfined(t, waiting(gate))
	write(t, gate, "")
	for id, front := range map[string]string{
		"ask": "recipe: ask", "ask-in-file": "recipe: ask\nwith: {WHY: because}", "risky": "recipe: risky",
		"risky-in-file": "recipe: risky", "no": "recipe: risky", "slow": "recipe: gated", "unwanted": "recipe: risky",
	} {
		r.draft(id, front)
	}
	r.must(3, "run")
	if n := len(r.inbox()); n != 6 {
		t.Errorf("%d wait for a person, want 6", n)
	}
	decideAll(r)
	r.must(0, "run")
	checkDecided(r)
}

// decideAll decides on everything, by commands and in files.
func decideAll(r *repo) {
	r.t.Helper()
	r.must(0, "answer", "ask", "2", "for a reason")
	r.must(0, "answer", "ask", "me")
	r.edit("ask-in-file", "answer: null", "answer: you")
	plan := r.inbox()["risky"].Plan
	r.must(1, "approve", "risky", "--plan", strings.Repeat("0", len(plan)))
	r.must(0, "approve", "risky", "--plan", plan)
	r.edit("risky-in-file", "status: proposed", "status: approved")
	r.must(0, "reject", "no", "--reason", "not wanted")
	r.must(0, "cancel", "unwanted")
}

func checkDecided(r *repo) {
	r.t.Helper()
	r.wantStatus("done", "slow", "ask", "ask-in-file", "risky", "risky-in-file")
	r.wantStatus("rejected", "no")
	r.wantStatus("cancelled", "unwanted")
	if got := r.read("ask.txt") + r.read("ask-in-file.txt"); got != "me, for a reason\nyou, because\n" {
		r.t.Errorf("the answers arrived as %q", got)
	}
	if n := len(r.subjects()); n != 6 {
		r.t.Errorf("main has %v", r.subjects())
	}
	contains(r.t, "the file of risky-in-file", r.read(".forge/intents/risky-in-file.yaml"), "status: done")
	contains(r.t, "the file of ask", r.read(".forge/intents/ask.yaml"), "answer: for a reason")
	r.tidy()
}

// edit changes an intent's file, as a person does who has just read it.
func (r *repo) edit(id, from, to string) {
	r.t.Helper()
	path := ".forge/intents/" + id + ".yaml"
	wait.Until(r.t, path+" is as expected", func() bool {
		return exists(filepath.Join(r.dir, path)) && strings.Contains(r.read(path), from)
	})
	r.write(path, strings.Replace(r.read(path), from, to, 1))
}

func number(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Ctrl-C ends the agents, keeps what they did, and the next run goes on.
func TestInterrupt(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	r := newUnconfined(t, waiting(gate))
	r.draft("slow", "recipe: gated")
	r.draft("after", "recipe: good\ndepends_on: [slow]")
	for range 2 {
		run := r.start("run")
		run.until("the recipe runs", func() bool { return exists(gate + ".slow.1") })
		run.signal(os.Interrupt)
		contains(t, "the run", run.wait(130).stderr, "Nothing is lost")
		if err := syscall.Kill(number(t, gate+".slow.1"), 0); err == nil {
			t.Error("the agent goes on")
		}
		if exists(filepath.Join(r.dir, ".forge/nats/client.json")) {
			t.Error("the server seems to go on")
		}
		kept := ""
		for ref := range strings.FieldsSeq(r.git("for-each-ref", "--format=%(refname)", "refs/forge/slow")) {
			kept += r.git("ls-tree", "-r", "--name-only", ref) + "\n"
		}
		contains(t, "what is kept", kept, "slow.part")
		if err := os.Remove(gate + ".slow.1"); err != nil {
			t.Fatal(err)
		}
	}
	r.wantStatus("executing", "slow")
	write(t, gate, "")
	r.must(0, "run")
	r.wantStatus("done", "slow", "after")
	if n := len(r.subjects()); n != 3 {
		t.Errorf("main has %v", r.subjects())
	}
	r.tidy()
}

// A task for each line of a command's output, and named tasks that wait for each
// other.
func TestManyTasks(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	r := newRepo(t, map[string]string{"pfl-forge.yaml": `recipes:
  each:
    each: seq -f 'item %g' 12
    run: echo "$FORGE_ITEM" > "$FORGE_ITEM.txt"
    check: grep -qx "$FORGE_ITEM" "$FORGE_ITEM.txt"
  tasks:
    tasks:
      - {name: last, run: cat left right > both, depends_on: [left, right]}
      - {name: left, run: cat top > left && echo left >> left, depends_on: [top]}
      - {name: right, run: cat top > right && echo right >> right, depends_on: [top]}
      - {name: top, run: echo top > top}
  failing:
    tasks:
      - {name: fails, run: exit 1}
      - {name: waits, run: echo x > waits, depends_on: [fails]}
      - {name: stands, run: echo x > stands}
`})
	r.draft("each", "recipe: each")
	r.draft("tasks", "recipe: tasks")
	r.draft("failing", "recipe: failing")
	r.must(2, "run")
	r.wantStatus("done", "each", "tasks")
	r.wantStatus("blocked", "failing")
	for i := range 12 {
		name := fmt.Sprintf("item %d", i+1)
		if got := r.read(name + ".txt"); got != name+"\n" {
			t.Errorf("%s has %q", name, got)
		}
	}
	if got := r.read("both"); got != "top\nleft\ntop\nright\n" {
		t.Errorf("both has %q", got)
	}
	if n := len(r.subjects()); n != 1+12+4+1 {
		t.Errorf("main has %d commits: %v", n, r.subjects())
	}
	if exists(filepath.Join(r.dir, "waits")) || !exists(filepath.Join(r.dir, "stands")) {
		t.Error("a task that waits for one that failed ran, or one that does not wait did not")
	}
	e := r.inbox()["failing"]
	contains(t, "the inbox", e.said(), "exited with status 1", "failing-001")
	r.tidy()
}
