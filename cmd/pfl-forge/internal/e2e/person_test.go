package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

const lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

// changing is a project whose recipes change a file that a person may work on.
func changing(gate string) map[string]string {
	return map[string]string{"a.txt": lines, ".gitignore": "/.forge/\n", "pfl-forge.yaml": `recipes:
  last: {run: echo ours >> a.txt}
  gated:
    params: [{name: GATE, default: ` + gate + `}]
    run: |
      echo ours >> a.txt
      echo x >> "$GATE.reached"
      until test -e "$GATE"; do sleep 0.02; done
`}
}

// uncommitted is what a person did to a file that an intent changes as well.
type uncommitted struct {
	name, recipe string
	first, mine  string // the file as committed, and as the person has it; absent: there is none
	person       func(r *repo, file string)
	settle       func(r *repo, file string) // so that the intent can go on
	want         string
}

const absent = "absent"

func uncommittedWork() []uncommitted {
	const changed = lines + "mine\n"
	ours := strings.Replace(lines, "1", "1 ours", 1)
	put := func(text string) func(*repo, string) { return func(r *repo, file string) { r.write(file, text) } }
	stage := func(text string) func(*repo, string) {
		return func(r *repo, file string) { r.write(file, text); r.git("add", file) }
	}
	take := func(r *repo, file string) { remove(r, file) }
	restore := func(r *repo, file string) { r.git("checkout", "-q", "HEAD", "--", file) }
	return []uncommitted{
		{"another-line", "first", lines, changed, put(changed), commit, ours + "mine\n"},
		{"same-line", "last", lines, changed, put(changed), commit, changed + "ours\n"},
		{"staged", "last", lines, "mine\n" + lines, stage("mine\n" + lines), commit, "mine\n" + lines + "ours\n"},
		{"staged-only", "first", lines, lines, func(r *repo, file string) { stage(changed)(r, file); r.write(file, lines) }, restore, ours},
		{"deleted", "last", lines, absent, take, restore, lines + "ours\n"},
		{"to-be-deleted", "remove", lines, "mine\n", put("mine\n"), restore, absent},
		{"untracked", "last", absent, "mine\n", put("mine\n"), commit, "mine\nours\n"},
		{"untracked-taken-away", "last", absent, "mine\n", put("mine\n"), take, "ours\n"},
		{"folder", "last", absent, absent, func(r *repo, file string) { r.write(file+"/mine", "mine\n") }, take, "ours\n"},
	}
}

// What a person has not committed is never touched: an intent that needs the same
// file waits, says so, and is merged once the person has committed and says retry.
func TestUncommittedWork(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	files := map[string]string{".gitignore": "/.forge/\n", "pfl-forge.yaml": `recipes:
  first: {run: sed -i '1s/$/ ours/' $FORGE_INTENT.txt}
  last: {run: echo ours >> $FORGE_INTENT.txt}
  remove: {run: rm $FORGE_INTENT.txt}
`}
	all := uncommittedWork()
	for _, c := range all {
		if c.first != absent {
			files[c.name+".txt"] = c.first
		}
	}
	r := newUnconfined(t, files)
	for _, c := range all {
		c.person(r, c.name+".txt")
		r.draft(c.name, "recipe: "+c.recipe)
	}
	r.draft("free", "recipe: last")
	before := r.git("status", "--porcelain", "-uall") + "\n" + r.git("diff", "HEAD") + "\n" + r.git("diff", "--cached")
	for range 2 { // waiting changes nothing
		r.must(3, "run")
		now := r.git("status", "--porcelain", "-uall") + "\n" + r.git("diff", "HEAD") + "\n" + r.git("diff", "--cached")
		if now != before {
			t.Errorf("the person's work was:\n%s\nand is:\n%s", before, now)
		}
	}
	r.wantStatus("done", "free")
	box := r.inbox()
	retry := []string{"retry"}
	for _, c := range all {
		file := c.name + ".txt"
		e := box[c.name]
		if e.Waiting != "dirty" || !strings.Contains(e.Reason, file) {
			t.Errorf("the inbox says %q of %s: %s; want that %s is in the way", e.Waiting, c.name, e.Reason, file)
		}
		contains(t, "the inbox", strings.Join(e.Commands, "\n"), "pfl-forge retry "+c.name)
		if got := content(r, file); got != c.mine {
			t.Errorf("the person's %s is %q, want %q", file, got, c.mine)
		}
		c.settle(r, file)
		retry = append(retry, c.name)
	}
	r.must(0, retry...)
	r.must(0, "run")
	for _, c := range all {
		if got := content(r, c.name+".txt"); got != c.want {
			t.Errorf("%s.txt is %q, want %q", c.name, got, c.want)
		}
	}
	if out := r.git("status", "--porcelain"); out != "" {
		t.Errorf("left to commit:\n%s", out)
	}
	r.tidy()
}

// content is that of a file, or absent.
func content(r *repo, file string) string {
	r.t.Helper()
	info, err := os.Lstat(filepath.Join(r.dir, file))
	if err != nil || info.IsDir() {
		return absent
	}
	return r.read(file)
}

func commit(r *repo, file string) {
	r.t.Helper()
	r.git("add", file)
	r.git("commit", "-q", "-m", "mine", "--", file)
}

// A person commits to main while an agent works on the same file: their commit
// stays as it is, and ours goes on top of it.
func TestCommitMeanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, mine, want string }{
		{"another place", "mine\n" + lines, "mine\n" + lines + "ours\n"},
		{"the same place", lines + "mine\n", lines + "mine\nours\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			gate := filepath.Join(t.TempDir(), "gate")
			r := newUnconfined(t, changing(gate))
			r.draft("change", "recipe: gated")
			run := r.start("run")
			run.until("the recipe runs", func() bool { return exists(gate + ".reached") })
			r.write("a.txt", c.mine)
			r.git("commit", "-qam", "mine")
			theirs := r.git("rev-parse", "HEAD")
			write(t, gate, "")
			run.wait(0)
			if got := r.read("a.txt"); got != c.want {
				t.Errorf("a.txt is %q, want %q", got, c.want)
			}
			if got := r.git("rev-parse", "main^"); got != theirs {
				t.Errorf("ours stands on %s, want theirs, %s", got, theirs)
			}
			if n := len(r.subjects()); n != 3 {
				t.Errorf("main has %v", r.subjects())
			}
			r.tidy()
		})
	}
}

// Main moves after the rebase, while the project's commands verify it: what is merged
// was verified on top of the person's commit.
func TestCommitWhileVerifying(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	files := changing(gate)
	files["pfl-forge.yaml"] += "verify:\n  - git rev-parse HEAD^ >> " + gate + ".verified; until test -e " + gate + "; do sleep 0.02; done\n"
	r := newUnconfined(t, files)
	r.draft("change", "recipe: last")
	run := r.start("run")
	run.until("it is verified", func() bool { return exists(gate + ".verified") })
	r.write("mine.txt", "mine\n")
	commit(r, "mine.txt")
	theirs := r.git("rev-parse", "HEAD")
	write(t, gate, "")
	run.wait(0)
	if got := r.git("rev-parse", "main^"); got != theirs {
		t.Errorf("ours stands on %s, want theirs, %s", got, theirs)
	}
	verified, err := os.ReadFile(gate + ".verified")
	if got := strings.Fields(string(verified)); err != nil || len(got) < 2 || got[len(got)-1] != theirs {
		t.Errorf("verified on %v, want on %s in the end", got, theirs)
	}
	r.tidy()
}

// The branch that a person is on is theirs: main moves without it.
func TestOtherBranchMeanwhile(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	for _, base := range []string{"base_branch: main\n", ""} {
		t.Run("config "+base, func(t *testing.T) {
			gate := filepath.Join(t.TempDir(), "gate")
			files := changing(gate)
			files["pfl-forge.yaml"] = base + files["pfl-forge.yaml"]
			r := newUnconfined(t, files)
			r.draft("change", "recipe: gated")
			run := r.start("run")
			run.until("the recipe runs", func() bool { return exists(gate + ".reached") })
			r.git("checkout", "-q", "-b", "side")
			r.write("a.txt", "side\n")
			r.git("commit", "-qam", "side")
			side := r.git("rev-parse", "side")
			r.write("a.txt", "side, changed\n")
			write(t, gate, "")
			run.wait(0)
			if got := r.git("show", "main:a.txt"); got != lines+"ours" {
				t.Errorf("a.txt on main is %q", got)
			}
			if head, at := r.git("symbolic-ref", "HEAD"), r.git("rev-parse", "side"); head != "refs/heads/side" || at != side {
				t.Errorf("HEAD is on %s, and side at %s; want side at %s", head, at, side)
			}
			if got := r.read("a.txt"); got != "side, changed\n" {
				t.Errorf("the person's a.txt is %q", got)
			}
			r.tidy()
		})
	}
}

// A merge that a person has not finished when an intent is merged: it waits.
func TestUnfinishedMergeMeanwhile(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	files := changing(gate)
	files["f"] = "f\n"
	r := newUnconfined(t, files)
	r.draft("change", "recipe: gated")
	run := r.start("run")
	run.until("the recipe runs", func() bool { return exists(gate + ".reached") })
	merging(r)
	before := r.git("status") + r.read("f")
	write(t, gate, "")
	run.wait(3)
	e := r.inbox()["change"]
	contains(t, "the inbox", e.Waiting+" "+e.Reason, "dirty", "a git operation that is not finished")
	if got := r.git("status") + r.read("f"); got != before {
		t.Errorf("the person's merge was:\n%s\nand is:\n%s", before, got)
	}
	r.write("f", "both\n")
	r.git("add", "f")
	r.git("commit", "-q", "-m", "merged")
	r.must(0, "retry", "change")
	r.must(0, "run")
	if got := r.read("a.txt") + r.read("f"); got != lines+"ours\nboth\n" {
		t.Errorf("the files are %q", got)
	}
	r.tidy()
}

// A person breaks the configuration while an agent works: the intent is in the
// inbox with the line, and goes on when it is mended.
func TestBrokenConfigMeanwhile(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	files := changing(gate)
	r := newUnconfined(t, files)
	r.draft("change", "recipe: gated")
	run := r.start("run")
	run.until("the recipe runs", func() bool { return exists(gate + ".reached") })
	r.write("pfl-forge.yaml", "recipies: {}\n"+files["pfl-forge.yaml"])
	r.git("commit", "-qam", "broken")
	write(t, gate, "")
	run.wait(2)
	e := r.inbox()["change"]
	contains(t, "the inbox", e.said(), "pfl-forge.yaml:1: recipies: unknown key")
	r.git("revert", "--no-edit", "HEAD")
	r.must(0, "retry", "change")
	r.must(0, "run")
	if got := r.subjects(); len(got) != 4 || !slices.Contains(strings.Fields(r.read("a.txt")), "ours") {
		t.Errorf("main has %v, a.txt is %q", got, r.read("a.txt"))
	}
	r.tidy()
}
