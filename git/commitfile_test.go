package git_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
)

func TestCommitFile(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n", "dir/b": "b\n"})
	r.write("tool", "#!/bin/sh\n")
	r.git("add", "tool")
	r.git("update-index", "--chmod=+x", "tool")
	r.link("dir", "link")
	r.link("a", "dir/alias")
	r.git("add", "link", "dir/alias")
	r.git("commit", "-qm", "more")
	s, head := r.store(), r.head("HEAD")
	put := func(path, content string) (git.OID, error) {
		return s.CommitFile(t.Context(), head, git.Path(path), []byte(content), "Write it\n\nForge-Task: t\n")
	}
	for path, status := range map[string]string{
		"a": "M\ta", "dir/b": "M\tdir/b", "tool": "M\ttool", "new": "A\tnew", ".claude/skills/x/SKILL.md": "A\t.claude/skills/x/SKILL.md",
		"dir.go": "A\tdir.go", "dir/new": "A\tdir/new", "Ü": "A\tÜ",
	} {
		got, err := put(path, "new\n")
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if is := r.git("-c", "core.quotePath=off", "diff", "--name-status", string(head), string(got)); is != status {
			t.Errorf("%s: it changes %q", path, is)
		}
		if is := r.git("show", string(got)+":"+path); is != "new" {
			t.Errorf("%s holds %q", path, is)
		}
		if is := r.git("log", "-1", "--format=%P %B", string(got)); is != string(head)+" Write it\n\nForge-Task: t" {
			t.Errorf("%s: the commit is %q", path, is)
		}
		if path == "tool" && !strings.HasPrefix(r.git("ls-tree", string(got), "tool"), "100755") {
			t.Error("the tool is not executable any more")
		}
	}
	if got, err := put("a", "a\n"); got != head || err != nil {
		t.Errorf("of what is there already: %s, %v", got, err)
	}
	for _, path := range []string{
		"dir", "link", "link/b", "dir/alias", "a/b", ".git/config", "sub/.GIT/hooks/x", ".forge/task.yaml", ".forge",
	} {
		_, err := put(path, "new\n")
		if w, ok := errors.AsType[*git.WorkError](err); !ok || w.Fault != git.Unsafe || w.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := put("a", strings.Repeat("x", 32<<20+1)); err == nil {
		t.Error("a file above the limit is taken")
	}
	r.git("fsck", "--strict")
}
