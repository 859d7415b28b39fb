package merged_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local/merged"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/trailers"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// world is an origin that people and a forge merge into, and a person's clone of it.
type world struct {
	t     *testing.T
	r     gittest.Repo
	clone *store.Store
	dir   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, r: gittest.New(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n"}), dir: t.TempDir()}
	gittest.At(t, w.dir).Git("clone", "-q", w.r.Dir, ".")
	var err error
	if w.clone, err = store.OpenLocal(t.Context(), store.LocalConfig{Path: w.dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.clone.Close)
	return w
}

// message returns that of the change of a task of a project.
func message(project forge.ProjectID, task forge.TaskID) string {
	return "Fix it\n\n" + strings.Join((&trailers.Change{Project: project, Intent: task.Intent(), Task: task, Requester: "ada"}).Lines(), "\n")
}

// propose commits the change of a task of the project shop on the tip of main,
// and keeps it as one that was pushed to the branch of its pull request.
func (w *world) propose(task forge.TaskID, files map[string]string) git.OID {
	w.t.Helper()
	w.r.Git("checkout", "-q", "--detach", "main")
	head := w.r.Commit(message("shop", task), files)
	w.r.Git("update-ref", "refs/forge/_proposed/"+string(task), string(head))
	w.r.Git("checkout", "-q", "main")
	return head
}

// found returns what is found in the clone, after a fetch.
func (w *world) found() map[forge.TaskID]git.OID {
	w.t.Helper()
	gittest.At(w.t, w.dir).Git("fetch", "-q", "origin", "+main:refs/remotes/origin/main")
	list, err := (&merged.Branch{Store: w.clone, Tip: w.r.Head("main"), Project: "shop", Remote: "origin"}).Changes(wait.Context(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[forge.TaskID]git.OID{}
	for _, c := range list {
		if c.Intent != c.Task.Intent() || found[c.Task] != "" {
			w.t.Errorf("it found %+v", c)
		}
		found[c.Task] = c.Commit
	}
	return found
}

// TestChanges: whatever a forge makes of a pull request, with our trailers or
// with words of its own, is found on the base branch; what is still open, was
// closed, or was merged with more than the change, is not.
func TestChanges(t *testing.T) {
	w := newWorld(t)
	run := w.r.Git
	squash := func(head git.OID, message string) git.OID {
		run("merge", "-q", "--squash", string(head))
		run("commit", "-q", "-m", message)
		return w.r.Head("HEAD")
	}
	want := map[forge.TaskID]git.OID{}
	for i, test := range []struct {
		name  string
		merge func(task forge.TaskID, head git.OID) git.OID // returns the commit that has it; empty if none is found
	}{
		{"open", func(forge.TaskID, git.OID) git.OID { return "" }},
		{"fast-forward", func(_ forge.TaskID, head git.OID) git.OID {
			run("merge", "-q", "--ff-only", string(head))
			return head
		}},
		{"a merge commit with the trailers", func(task forge.TaskID, head git.OID) git.OID {
			run("merge", "-q", "--no-ff", "-m", message("shop", task), string(head))
			return w.r.Head("HEAD")
		}},
		{"a merge commit with the forge's words", func(_ forge.TaskID, head git.OID) git.OID {
			run("merge", "-q", "--no-ff", "-m", "Merge pull request 'Fix it' (#1) from forge/fix into main", string(head))
			return w.r.Head("HEAD")
		}},
		{"a merge commit of a stranger's commit with our trailers", func(task forge.TaskID, _ git.OID) git.OID {
			run("checkout", "-q", "--detach")
			w.r.Commit(message("shop", task)+"\n\nSigned-off-by: E <e@example.org>", map[string]string{"strange.txt": string(task)})
			theirs := run("rev-parse", "HEAD")
			run("checkout", "-q", "main")
			run("merge", "-q", "--no-ff", "-m", "Merge pull request #9 from eve/main", theirs)
			return ""
		}},
		{"a squash with the forge's words", func(_ forge.TaskID, head git.OID) git.OID { return squash(head, "Fix it (#1)") }},
		{"made anew on another base", func(_ forge.TaskID, head git.OID) git.OID {
			w.r.Commit("another", map[string]string{"other.txt": "1"})
			run("cherry-pick", string(head))
			return w.r.Head("HEAD")
		}},
		{"a squash on another base", func(_ forge.TaskID, head git.OID) git.OID {
			w.r.Commit("another", map[string]string{"other.txt": "2"})
			return squash(head, "Fix it (#1)")
		}},
		{"a squash where the lines around are others", func(task forge.TaskID, head git.OID) git.OID {
			w.r.Commit("above", map[string]string{string(task) + ".txt": strings.Repeat("x\n", 10) + "a\n"})
			squash(head, "Fix it (#1)")
			return ""
		}},
		{"a squash of a list of messages", func(task forge.TaskID, head git.OID) git.OID {
			return squash(head, "Fix it (#1)\n\n* "+message("shop", task)+"\n\n* more\n\nCo-authored-by: B <b@example.org>")
		}},
		{"a merge commit of commits made anew, with other words", func(_ forge.TaskID, head git.OID) git.OID {
			w.r.Commit("another", map[string]string{"other.txt": "3"})
			run("checkout", "-q", "--detach")
			run("cherry-pick", "--no-commit", string(head))
			run("commit", "-q", "-m", "theirs")
			anew := run("rev-parse", "HEAD")
			run("checkout", "-q", "main")
			run("merge", "-q", "--no-ff", "-m", "Merge it", anew)
			return w.r.Head("HEAD")
		}},
		{"a squash with more of a person", func(task forge.TaskID, head git.OID) git.OID {
			run("merge", "-q", "--squash", string(head))
			w.r.Write(string(task)+".txt", "theirs")
			run("commit", "-q", "-a", "-m", "Fix it (#1)")
			return ""
		}},
	} {
		task := forge.TaskID(fmt.Sprintf("fix-%03d", i+1))
		w.r.Commit(test.name, map[string]string{string(task) + ".txt": "a\n"})
		if commit := test.merge(task, w.propose(task, map[string]string{string(task) + ".txt": "a\nmore\n"})); commit != "" {
			want[task] = commit
		}
	}
	if diff := cmp.Diff(want, w.found()); diff != "" {
		t.Error(diff)
	}
}

// TestOthersAreNone: what another project proposed, what is kept under the name of another
// task, and refs that are none of ours, say nothing; and nothing is written but objects.
func TestOthersAreNone(t *testing.T) {
	w := newWorld(t)
	var heads []git.OID
	for i, said := range []string{message("other", "fix-001"), message("shop", "other-002"), "no trailers"} {
		w.r.Git("checkout", "-q", "--detach", "main")
		heads = append(heads, w.r.Commit(said, map[string]string{fmt.Sprint(i, ".txt"): "x\n"}))
		w.r.Git("update-ref", fmt.Sprintf("refs/forge/_proposed/fix-00%d", i+1), string(heads[i]))
		w.r.Git("checkout", "-q", "main")
	}
	w.r.Git("update-ref", "refs/forge/_proposed/Fix.001", string(heads[0]))
	w.r.Git("update-ref", "refs/forge/_proposed/root-001", w.r.Git("rev-list", "--max-parents=0", "main"))
	for _, head := range heads {
		w.r.Git("merge", "-q", "--squash", string(head))
		w.r.Git("commit", "-q", "-m", "theirs")
	}
	before := gittest.At(t, w.dir).Git("for-each-ref")
	if got := w.found(); len(got) > 0 {
		t.Errorf("found %q", got)
	}
	after := gittest.At(t, w.dir).Git("for-each-ref")
	if strings.Contains(after, "refs/forge/") || before == after { // the second has main
		t.Errorf("the refs of the clone are %s", after)
	}
}

// TestRemoteThatIsAway: a list that would lack something is none; a clone
// without a remote has nothing that was proposed.
func TestRemoteThatIsAway(t *testing.T) {
	w := newWorld(t)
	b := &merged.Branch{Store: w.clone, Tip: w.r.Head("main"), Project: "shop", Remote: "origin"}
	gittest.At(t, w.dir).Git("remote", "set-url", "origin", w.r.Dir+"-gone")
	if _, err := b.Changes(wait.Context(t)); err == nil || !strings.Contains(err.Error(), "what was proposed cannot be read from origin") {
		t.Errorf("got %v", err)
	}
	ran := filepath.Join(t.TempDir(), "ran") // there as soon as the transport ext is allowed, whatever it says then
	gittest.At(t, w.dir).Git("remote", "set-url", "origin", "ext::touch "+ran)
	if _, err := b.Changes(wait.Context(t)); err == nil {
		t.Error("nothing is read from a program")
	}
	if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program of a remote was run: %v", err)
	}
	gittest.At(t, w.dir).Git("remote", "remove", "origin")
	if list, err := b.Changes(wait.Context(t)); err != nil || len(list) > 0 {
		t.Errorf("without a remote: %v, %v", list, err)
	}
}
