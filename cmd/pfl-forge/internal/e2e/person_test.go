package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

// changing is a project whose recipes change a file that a person may work on.
func changing(gate string) map[string]string {
	return map[string]string{"a.txt": lines, ".gitignore": "/.forge/\n", "pfl-forge.yaml": `recipes:
  first: {run: sed -i '1s/$/ ours/' a.txt}
  last: {run: echo ours >> a.txt}
  new: {run: echo ours >> new.txt}
  remove: {run: rm a.txt}
  other: {run: echo x > other.txt}
  gated:
    params: [{name: GATE, default: ` + gate + `}]
    run: |
      echo ours >> a.txt
      echo x >> "$GATE.reached"
      until test -e "$GATE"; do sleep 0.02; done
`}
}

// What a person has not committed is never touched: an intent that needs the same
// file waits, says so, and lands once the person has committed and says retry.
func TestUncommittedWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, recipe string
		person       func(r *repo)
		file         string // that the inbox names
		settle       func(r *repo)
		want         string // the file in the end
	}{
		{
			"another line of the file", "first",
			func(r *repo) { r.write("a.txt", lines+"mine\n") }, "a.txt", commitAll, strings.Replace(lines, "1", "1 ours", 1) + "mine\n",
		},
		{
			"the same line", "last",
			func(r *repo) { r.write("a.txt", lines+"mine\n") }, "a.txt", commitAll, lines + "mine\nours\n",
		},
		{
			"staged", "last",
			func(r *repo) { r.write("a.txt", "mine\n"+lines); r.git("add", "a.txt") }, "a.txt", commitAll, "mine\n" + lines + "ours\n",
		},
		{
			"staged and changed again", "first",
			func(r *repo) { r.write("a.txt", lines+"8\n"); r.git("add", "a.txt"); r.write("a.txt", lines) }, "a.txt",
			func(r *repo) { r.git("reset", "-q", "--hard") }, strings.Replace(lines, "1", "1 ours", 1),
		},
		{
			"deleted", "last", func(r *repo) { remove(r, "a.txt") }, "a.txt",
			func(r *repo) { r.git("checkout", "-q", "--", "a.txt") }, lines + "ours\n",
		},
		{"to be deleted", "remove", func(r *repo) { r.write("a.txt", "mine\n") }, "a.txt", func(r *repo) { r.git("checkout", "-q", "--", "a.txt") }, ""},
		{"untracked in the way", "new", func(r *repo) { r.write("new.txt", "mine\n") }, "new.txt", commitAll, "mine\nours\n"},
		{
			"untracked, taken away", "new", func(r *repo) { r.write("new.txt", "mine\n") }, "new.txt",
			func(r *repo) { remove(r, "new.txt") }, "ours\n",
		},
		{
			"a folder in the way", "new", func(r *repo) { r.write("new.txt/mine", "mine\n") }, "new.txt",
			func(r *repo) { remove(r, "new.txt") }, "ours\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepo(t, changing("none"))
			c.person(r)
			before := mine(r)
			r.draft("change", "recipe: "+c.recipe)
			r.draft("other", "recipe: other")
			r.must(3, "run")
			r.wantStatus("done", "other")
			e := r.inbox()["change"]
			if e.Waiting != "dirty" || !strings.Contains(e.Reason, c.file) {
				t.Errorf("the inbox says %q: %s; want that %s is in the way", e.Waiting, e.Reason, c.file)
			}
			contains(t, "the inbox", strings.Join(e.Commands, "\n"), "pfl-forge retry change")
			if got := mine(r); got != before {
				t.Errorf("the person's work was:\n%s\nand is:\n%s", before, got)
			}
			r.must(3, "run") // waiting costs nothing, and changes nothing
			if got := mine(r); got != before {
				t.Errorf("the person's work was:\n%s\nand is:\n%s", before, got)
			}
			c.settle(r)
			r.must(0, "retry", "change")
			r.must(0, "run")
			r.wantStatus("done", "change")
			got := ""
			if exists(filepath.Join(r.dir, c.file)) {
				got = r.read(c.file)
			}
			if got != c.want {
				t.Errorf("%s is %q, want %q", c.file, got, c.want)
			}
			if out := r.git("status", "--porcelain"); out != "" {
				t.Errorf("left to commit:\n%s", out)
			}
			r.tidy()
		})
	}
}

// mine is what a person has not committed: the files but those of other.txt, and
// what git says of them.
func mine(r *repo) string {
	r.t.Helper()
	text := r.git("status", "--porcelain", "-uall") + "\n" + r.git("diff", "--cached") + "\n"
	for _, name := range []string{"a.txt", "new.txt", "new.txt/mine"} {
		content, err := os.ReadFile(filepath.Join(r.dir, name))
		if err == nil {
			text += name + ":\n" + string(content)
		}
	}
	return text
}

func commitAll(r *repo) {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "mine")
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
			r := newRepo(t, changing(gate))
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

// Main moves after the rebase, while the project's commands verify it: what lands
// was verified on top of the person's commit.
func TestCommitWhileVerifying(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	files := changing(gate)
	files["pfl-forge.yaml"] += "verify:\n  - git rev-parse HEAD^ >> " + gate + ".verified; until test -e " + gate + "; do sleep 0.02; done\n"
	r := newRepo(t, files)
	r.draft("change", "recipe: last")
	run := r.start("run")
	run.until("it is verified", func() bool { return exists(gate + ".verified") })
	r.write("mine.txt", "mine\n")
	commitAll(r)
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
	t.Parallel()
	for _, base := range []string{"base_branch: main\n", ""} {
		t.Run("config "+base, func(t *testing.T) {
			gate := filepath.Join(t.TempDir(), "gate")
			files := changing(gate)
			files["pfl-forge.yaml"] = base + files["pfl-forge.yaml"]
			r := newRepo(t, files)
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

// A merge that a person has not finished when an intent lands: it waits.
func TestUnfinishedMergeMeanwhile(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	files := changing(gate)
	files["f"] = "f\n"
	r := newRepo(t, files)
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
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	files := changing(gate)
	r := newRepo(t, files)
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
