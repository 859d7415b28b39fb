package implementer

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
)

const skill = ".claude/skills/forms/SKILL.md"

// writing is a command for a task that says what a file is to hold. There is no agent
// here that it could call.
func writing(number int, path, content string) forge.Command {
	c := asked(number)
	c.Task.Title, c.Task.Write = "Record the skill forms", &forge.FileWrite{Path: path, Content: content}
	return c
}

func TestWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tip := string(w.repo.Head("main"))
	r := w.implement(writing(1, skill, "Use forms.\n"))
	im := forge.As[*forge.Implementation](r.Output)
	if r.Failure() != nil || im == nil {
		t.Fatalf("%+v", r.Failure())
	}
	if r.Usage != (forge.Usage{}) || r.Session != "" || r.Agent != "" || im.Base != tip || im.Commits != 1 || im.Unchanged || im.Leftover != "" {
		t.Errorf("got %+v, %+v", r, im)
	}
	if diff := cmp.Diff([]string{skill}, im.Files); diff != "" {
		t.Error(diff)
	}
	if got := w.repo.Show(im.Head, skill); got != "Use forms." {
		t.Errorf("it holds %q", got)
	}
	want := "Record the skill forms\n\nFix it\n\nForge-Project: shop\nForge-Intent: fix\nForge-Task: fix-001"
	if diff := cmp.Diff(want, w.repo.Git("log", "-1", "--format=%B", im.Head)); diff != "" {
		t.Error(diff)
	}

	// It goes the way of every change, and then there is nothing left to do.
	if rb := w.rebased(im); len(rb.Conflicts) > 0 || w.merges(merge(1, rb)).Outcome != forge.MergeDone {
		t.Errorf("got %+v", rb)
	}
	again := w.implemented(writing(1, skill, "Use forms.\n"))
	if !again.Unchanged || again.Head != again.Base || again.Commits != 0 || again.Base != string(w.repo.Head("main")) {
		t.Errorf("got %+v", again)
	}
	if im := w.implemented(writing(1, skill, "Use more forms.\n")); im.Commits != 1 || im.Unchanged {
		t.Errorf("got %+v", im)
	}
}

// Whatever the review says, the same content makes no other change; other content does.
func TestWriteAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.implemented(writing(1, skill, "one\n"))
	c := writing(2, skill, "one\n")
	c.Task.Base, c.Task.Head, input(&c).Feedback = first.Base, first.Head, "wrong"
	if im := w.implemented(c); im.Commits != 0 || im.Unchanged || im.Head != first.Head {
		t.Errorf("got %+v", im)
	}
	c.Task.Write.Content = "two\n"
	if im := w.implemented(c); im.Commits != 2 || im.Base != first.Base || w.repo.Show(im.Head, skill) != "two" {
		t.Errorf("got %+v", im)
	}
	tip := w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	input(&c).Fresh = true
	if im := w.implemented(c); im.Commits != 1 || im.Base != string(tip) {
		t.Errorf("got %+v", im)
	}
}

func TestWriteStaysInTheTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link(t, "/etc", w.repo.Dir+"/out")
	w.repo.Git("add", "out")
	w.repo.Commit("a link", nil)
	for _, path := range []string{
		"", ".", "..", "../x", "/etc/passwd", "a/../../x", "a/./b", "a//b", "a.txt/", "new\n.txt", "out/x", "out", ".git/config",
		"x/.git/hooks/post-checkout", ".forge/task.yaml", "a.txt/x", strings.Repeat("x/", 3000) + "y",
	} {
		fails(t, w.implement(writing(1, path, "x\n")), forge.FailUnsafe, "")
	}
	if refs := w.refs(""); len(refs) > 0 {
		t.Errorf("kept %q", refs)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}
