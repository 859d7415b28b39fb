package implementer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// refusing has an origin refuse pushes to its base branch, or of what we keep there, until the hook
// is removed. What it prints has an escape sequence, and a line that is longer than any message.
func refusing(t *testing.T, origin, refs string) (mend func()) {
	t.Helper()
	hook := filepath.Join(origin, "hooks", "pre-receive")
	script := "#!/bin/sh\nwhile read old new ref; do case $ref in " + refs +
		") printf 'closed \\033[31mfor\\033[0m maintenance\\n%0500d\\n' 1 >&2; exit 1;; esac; done\n"
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(hook); err != nil {
			t.Fatal(err)
		}
	}
}

// A push that a hook refuses is told with its words, safe and short, and what
// was verified is not verified again.
func TestRefusedPush(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	for _, refs := range []string{"refs/heads/*", "refs/forge/*"} {
		t.Run(filepath.Base(filepath.Dir(refs)), func(t *testing.T) {
			origin := gittest.At(t, r.Origin())
			w := worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t))
			rb := w.ready("new.txt", "x")
			person := gittest.At(t, r.Dir)
			person.Commit("somebody else", map[string]string{"b.txt": "c\n"})
			person.Git("push", "-q", origin.Dir, "main")
			tip := origin.Head("main")
			mend := refusing(t, origin.Dir, refs)
			got := w.merges(merge(1, rb))
			if got.Outcome != forge.MergeRefused || !strings.HasPrefix(got.Refusal, "main: closed for maintenance; 000") || len(got.Refusal) > 310 {
				t.Fatalf("got %+v", got)
			}
			if origin.Head("main") != tip {
				t.Fatal("it merged")
			}
			mend()
			again := merge(1, rb)
			again.Attempt.Claim = 2
			in := again.Merge()
			in.Tried, in.In = got.Candidate, "where it was verified"
			again.Input = &in
			w.want(again)
			done := w.imp.merge(t.Context(), again, silent)
			out := forge.As[*forge.MergeResult](done.Output)
			if out == nil || out.Outcome != forge.MergeDone || origin.Head("main") != git.OID(out.Commit) {
				t.Fatalf("got %+v", done.Output)
			}
			if got.Candidate == nil || done.Executor != in.In {
				t.Error("it was verified again")
			}
		})
	}
}
