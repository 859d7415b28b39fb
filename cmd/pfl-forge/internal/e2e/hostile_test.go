package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// hostile is a recipe that does not behave.
type hostile struct {
	name  string
	run   string   // OUT is a folder of the test, which nothing may be written to but pid files
	check string   // the recipe's check, if it has one
	more  string   // further keys of the recipe
	says  []string // what the inbox says; empty when the work is merged
	adds  []string // the files that come to main when it is merged
}

// planted makes git run a canary in whatever uses the checkout's .git.
const planted = `
      printf '#!/bin/sh\ntouch %s\ncat 2>/dev/null\n' "$OUT/canary" > .git/evil && chmod +x .git/evil
      for h in pre-commit post-commit post-checkout reference-transaction post-index-change post-merge; do
        mkdir -p .git/hooks && cp .git/evil .git/hooks/$h
      done
      e=$PWD/.git/evil
      printf '[core]\n fsmonitor = %s\n alternateRefsCommand = %s\n pager = %s\n' "$e" "$e" "$e" >> .git/config
      printf '[filter "evil"]\n clean = %s\n smudge = %s\n[diff]\n external = %s\n' "$e" "$e" "$e" >> .git/config
      printf '[core]\n hooksPath = %s\n[include]\n path = %s\n' "$PWD/.git/hooks" "$OUT/more" >> .git/config
      echo '* filter=evil diff=evil merge=evil' > .git/info/attributes
      echo "$OUT" >> .git/objects/info/alternates
      echo planted > planted.txt
      echo 'planted.txt filter=evil diff=evil merge=evil' > .gitattributes`

// daemon leaves a process behind that no signal but the last one ends, in a session
// of its own, and waits until it is there.
const daemon = `
      ( setsid sh -c 'trap "" TERM INT HUP; cd /; echo $$ > "$OUT/pid-'$FORGE_TASK'-$FORGE_ATTEMPT"; while :; do sleep 1000; done' >/dev/null 2>&1 & ) &
      until test -s "$OUT/pid-$FORGE_TASK-$FORGE_ATTEMPT"; do :; done`

// inner makes a repository inside the checkout.
const inner = `git init -q sub && echo x > sub/a && git -C sub add a && git -C sub -c user.name=x -c user.email=x@example.org commit -qm inner`

// core is how many of the hostiles are there in the quick size as well.
const core = 2

var hostiles = []hostile{
	{
		name: "no-git", run: `rm -rf .git; echo x > x.txt; git add -A; git commit -m mine; git update-ref refs/heads/main HEAD~; git branch -f main HEAD~; true`,
		says: []string{"unsafe", ".git", "was deleted or replaced"},
	},
	{name: "rewrite", run: `git commit -q --amend --allow-empty -m "all mine"`, says: []string{"unsafe", "rewritten"}},
	{name: "plant", run: planted, adds: []string{".gitattributes", "planted.txt"}},
	{name: "link-in-commit", run: `ln -s "$OUT" out && git add out && git commit -qm link`, says: []string{"unsafe", "symbolic link out of the tree"}},
	{name: "daemon", run: daemon + `
      echo x > daemon.txt`, adds: []string{"daemon.txt"}},
	{name: "hang", run: `trap '' TERM INT HUP
      echo $$ > "$OUT/pid-$FORGE_TASK-$FORGE_ATTEMPT"
      while :; do sleep 1000; done`, says: []string{"timeout", "4s"}},
	{name: "hang-in-check", run: `echo x > checked.txt`, check: "sleep 1000", more: "timeout: 5s", says: []string{"review", "timeout", "5s"}},
	{name: "flood", run: `head -c 1073741824 /dev/zero | tr '\0' x`, says: []string{"output_limit"}},
	{name: "flood-lines", run: `yes "$(head -c 1000 /dev/zero | tr '\0' y)" | head -c 1073741824 >&2`, says: []string{"output_limit"}},
	{name: "hang-in-each", run: "echo x > x.txt", more: "each: sleep 1000\n    timeout: 1s", says: []string{"analyze", "timeout"}},
	{name: "flood-in-each", run: "echo x > x.txt", more: "each: yes | head -c 1073741824", says: []string{"analyze"}},
	{
		name: "strange-in-each", run: `test "$FORGE_ITEM" = '../../$(id)' && echo x > strange.txt`,
		more: `each: printf '../../$(id)\n'`, adds: []string{"strange.txt"},
	},
	{name: "daemon-fails", run: daemon + `
      exit 3`, says: []string{"exited with status 3"}},
	{name: "no-checkout", run: `rm -rf "$PWD"; true`, says: []string{"unsafe", "was deleted"}},
	{name: "branches", run: `git checkout -q -b mine && echo x > stray.txt && git add -A && git commit -qm stray
      git update-ref refs/heads/main HEAD && git branch -f mainly HEAD && git update-ref refs/tags/v1 HEAD
      git checkout -q "forge/$FORGE_TASK" && git branch -D mine && echo x > branches.txt`, adds: []string{"branches.txt"}},
	{name: "no-branch", run: `git checkout -q --detach && git branch -D "forge/$FORGE_TASK" && echo x > x.txt`, says: []string{"unsafe", "refs/heads/forge"}},
	{
		name: "merge", run: `root=$(git commit-tree -m root HEAD^{tree})
      git update-ref "refs/heads/forge/$FORGE_TASK" "$(git commit-tree -m evil -p HEAD -p $root HEAD^{tree})"`,
		says: []string{"unsafe", "merge"},
	},
	{name: "state-in-commit", run: `mkdir -p .forge && echo x > .forge/state.yaml && git add -f .forge && git commit -qm x`, says: []string{"unsafe", ".forge/"}},
	{name: "state-left", run: `mkdir -p .forge/intents && echo evil > .forge/intents/good-0.yaml && echo x > left.txt`, adds: []string{"left.txt"}},
	{
		name: "embedded", run: inner + ` && git -c advice.addEmbeddedRepo=false add sub && git commit -qm sub`,
		says: []string{"unsafe", `"sub"`},
	},
	{name: "embedded-left", run: inner, says: []string{"unsafe", `"sub`}},
	{name: "huge", run: `head -c 34000000 /dev/zero > huge.bin`, says: []string{"unsafe", "oversized", "huge.bin"}},
	{name: "garbage-git", run: `printf 'ref: refs/heads/../../../../x\n' > ".git/refs/heads/forge/$FORGE_TASK"; echo x > x.txt`, says: []string{"unsafe"}},
}

// hostileProject has all of them, and some that behave. Who hangs ends by the project's
// limit; to the others it must not matter how busy the machine is.
func hostileProject(out string) string {
	text := `parallel_workers: 4
timeouts: {implement: 4s}
max_review_retries: 0
recipes:
  good:
    params: [{name: FILE}]
    run: echo good > "$FILE"
    check: test "$(cat "$FILE")" = good
    timeout: 10m
  link-then-write:
    timeout: 10m
    params: [{name: OUT, default: ` + out + `}]
    tasks:
      - {name: link, run: ln -s "$OUT" out}
      - {name: write, run: echo x > out/canary, depends_on: [link]}
`
	for _, h := range hostiles {
		text += fmt.Sprintf("  %s:\n    params: [{name: OUT, default: %s}]\n    run: |\n      %s\n", h.name, out, h.run)
		if h.check != "" {
			text += "    check: " + h.check + "\n"
		}
		if h.more != "" {
			text += "    " + h.more + "\n"
		}
		if h.name != "hang" && !strings.Contains(h.more, "timeout: ") {
			text += "    timeout: 10m\n"
		}
	}
	return text
}

// Whatever a recipe does to itself, its checkout and its processes: it ends within
// its limits, the inbox says why, and neither the person's repository nor the other
// intents take notice.
func TestHostileRecipes(t *testing.T) {
	t.Parallel()
	hostiles := testsize.First(core, hostiles)
	out := t.TempDir()
	r := newUnconfined(t, map[string]string{"pfl-forge.yaml": hostileProject(out), "mine.txt": "mine\n", ".gitignore": "/.forge/\n"})
	r.git("tag", "before")
	r.git("branch", "elsewhere")
	r.write("mine.txt", "mine, changed\n")
	before := snapshot(r)

	failing := []string{"link-then-write"}
	merge := []string{"good-0", "good-1", "good-2"}
	files := []string{".gitignore", "good-0.txt", "good-1.txt", "good-2.txt", "mine.txt", "pfl-forge.yaml"}
	daemons := 0
	for _, h := range hostiles {
		if r.draft(h.name, "recipe: "+h.name); len(h.says) > 0 {
			failing = append(failing, h.name)
		} else {
			merge = append(merge, h.name)
			files = append(files, h.adds...)
		}
		if strings.Contains(h.run, "$OUT/pid-") {
			daemons++
		}
	}
	r.draft("link-then-write", "recipe: link-then-write")
	for i := range 3 {
		r.draft(fmt.Sprintf("good-%d", i), fmt.Sprintf("recipe: good\nwith: {FILE: good-%d.txt}", i))
	}
	r.must(2, "run")

	r.wantStatus("done", merge...)
	box := r.inbox()
	if got := slices.Sorted(maps.Keys(box)); !slices.Equal(got, slices.Sorted(slices.Values(failing))) {
		t.Errorf("in the inbox: %v; want %v", got, failing)
	}
	for _, h := range hostiles {
		if e, ok := box[h.name]; ok {
			contains(t, "the entry of "+h.name, e.said(), h.says...)
		}
	}
	e := box["link-then-write"]
	contains(t, "the entry of link-then-write", e.said(), "symbolic link out of the tree")
	if n, want := len(r.subjects()), len(merge)+1; n != want {
		t.Errorf("main has %d commits, want %d:\n%s", n, want, strings.Join(r.subjects(), "\n"))
	}
	checkMerged(r, files)
	for what, was := range before {
		if now := snapshot(r)[what]; now != was {
			t.Errorf("%s of the person's repository changed:\n%s\nwas:\n%s", what, now, was)
		}
	}
	checkOut(t, out, daemons)
	r.tidy()
}

// checkMerged looks at what came to main, and makes git look at it.
func checkMerged(r *repo, want []string) {
	r.t.Helper()
	got := strings.Fields(r.git("ls-tree", "-r", "--name-only", "main"))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("main has %v; want %v", got, want)
	}
	r.git("diff", "before", "main")
	if got := r.git("status", "--porcelain"); got != " M mine.txt" {
		r.t.Errorf("the checked-out files did not follow main:\n%s", got)
	}
}

// checkOut makes sure that nothing is in the folder but the pids of processes that
// are gone, of which there were at least this many.
func checkOut(t *testing.T, out string, least int) {
	t.Helper()
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	pids := 0
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(out, e.Name()))
		pid, perr := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || perr != nil {
			t.Errorf("a recipe wrote %s: %q, %v", e.Name(), text, err)
			continue
		}
		pids++
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d of %s goes on", pid, e.Name())
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if pids < least {
		t.Errorf("%d processes were left behind to be ended; want more", pids)
	}
}

// snapshot is what nobody may change in a person's repository, by name.
func snapshot(r *repo) map[string]string {
	r.t.Helper()
	refs := ""
	for line := range strings.Lines(r.git("for-each-ref", "--format=%(refname) %(objectname)") + "\n") {
		if !strings.HasPrefix(line, "refs/forge/") && !strings.HasPrefix(line, "refs/heads/main ") {
			refs += line
		}
	}
	config, err := os.ReadFile(filepath.Join(r.dir, ".git", "config"))
	if err != nil {
		r.t.Fatal(err)
	}
	return map[string]string{
		"config":     string(config),
		"refs":       refs,
		"HEAD":       r.git("symbolic-ref", "HEAD"),
		"hooks":      list(r, ".git/hooks"),
		"info":       list(r, ".git/info"),
		"my changes": r.read("mine.txt"),
		"alternates": strconv.FormatBool(exists(filepath.Join(r.dir, ".git/objects/info/alternates"))),
	}
}

// list returns the names and contents of the files in a folder.
func list(r *repo, folder string) string {
	r.t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.dir, folder))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	text := ""
	for _, e := range entries {
		text += e.Name() + ":\n" + r.read(filepath.Join(folder, e.Name())) + "\n"
	}
	return text
}
