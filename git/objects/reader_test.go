package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	gitcli "github.com/pfl-forge/pfl-forge/git"
)

// objectsOf makes a repository with objects of all kinds, and returns a
// database of it and what it holds.
func objectsOf(t *testing.T) (db *Database, git func(args ...string) string, all map[gitcli.OID][2]string) {
	t.Helper()
	dir := t.TempDir()
	git = func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("init", "-q")
	for n := range 5 {
		for i := range 20 {
			if err := os.WriteFile(fmt.Sprintf("%s/f%d", dir, i), []byte(strings.Repeat(fmt.Sprintln(i, n*(i%2)), 100+i)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		git("add", "-A")
		git("commit", "-q", "-m", fmt.Sprint("change ", n))
		if n == 2 {
			git("repack", "-adq")
		}
	}
	all = map[gitcli.OID][2]string{}
	rest := git("cat-file", "--batch", "--batch-all-objects")
	for rest != "" {
		var o, kind string
		var size int
		head, body, _ := strings.Cut(rest, "\n")
		if _, err := fmt.Sscan(head, &o, &kind, &size); err != nil {
			t.Fatal(err)
		}
		all[gitcli.OID(o)] = [2]string{kind, body[:size]}
		rest = body[size+1:]
	}
	db = NewDatabase(filepath.Join(dir, ".git"))
	if err := db.WriteHub(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, git, all
}

// Loose and packed objects, before and after they are packed, by several calls at once.
func TestReadObjects(t *testing.T) {
	db, git, all := objectsOf(t)
	check := func() {
		r := db.NewReader(t.Context())
		defer r.Close()
		for o, want := range all {
			if got, err := r.read(o, want[0], 1<<20); err != nil || string(got) != want[1] {
				t.Errorf("%s %s: %d bytes of %d, %v", want[0], o, len(got), len(want[1]), err)
			}
			if _, err := r.read(o, "tag", 1<<20); !errors.Is(err, gitcli.ErrNotFound) || errors.Is(err, gitcli.ErrTooLarge) {
				t.Errorf("%s is no tag: %v", o, err)
			}
		}
		for _, o := range []gitcli.OID{gitcli.OID(strings.Repeat("1", 40)), gitcli.OID(strings.Repeat("f", 40))} {
			if _, err := r.read(o, "commit", 1<<20); !errors.Is(err, gitcli.ErrNotFound) {
				t.Errorf("found %q: %v", o, err)
			}
		}
		for _, o := range []gitcli.OID{"", "ff", "HEAD", "HEAD\nHEAD"} {
			if _, err := r.read(o, "commit", 1<<20); err == nil {
				t.Errorf("found %q", o)
			}
		}
	}
	check()
	git("repack", "-adq") // the processes that wait know the old packs
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(check)
	}
	wg.Wait()
	if n := len(db.readers.idle); n == 0 || n > maxIdle {
		t.Errorf("%d processes wait", n)
	}
}

// A process that went wrong, or was killed, is not asked again.
func TestReadersAreReplaced(t *testing.T) {
	db, git, all := objectsOf(t)
	var large, commit gitcli.OID
	for o, want := range all {
		if want[0] == "blob" {
			large = o
		}
		if want[0] == "commit" {
			commit = o
		}
	}
	r := db.NewReader(t.Context())
	defer r.Close()
	for what, spoil := range map[string]func(){
		"too large": func() {
			if _, err := r.read(large, "blob", 10); !errors.Is(err, gitcli.ErrTooLarge) || !errors.Is(err, gitcli.ErrNotFound) {
				t.Error(err)
			}
		},
		"cancelled": func() {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			late := db.NewReader(ctx)
			defer late.Close()
			if _, err := late.read(commit, "commit", 1<<20); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		},
		"killed": func() {
			for _, c := range db.readers.idle {
				c.git.Kill()
				_, _ = c.git.Out.Peek(1) // until it has ended
			}
		},
		"idle": db.Close,
	} {
		if _, err := r.Commit(commit); err != nil {
			t.Fatal(err)
		}
		spoil()
		if got, err := r.read(commit, "commit", 1<<20); err != nil || string(got) != all[commit][1] {
			t.Errorf("after one that was %s: %q, %v", what, got, err)
		}
	}
	git("commit", "-q", "--allow-empty", "-m", "new")
	head := gitcli.OID(strings.TrimSpace(git("rev-parse", "HEAD")))
	if c, err := r.Commit(head); err != nil || c.Message != "new\n" {
		t.Errorf("%+v, %v", c, err)
	}
}
