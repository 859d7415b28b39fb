package objects

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	gitcli "github.com/pfl-forge/pfl-forge/git"
)

// TestRawChanges: two trees differ as git says, whatever became of which path: also files in the
// place of directories, links, submodules, modes, and modes that only old versions of git wrote.
func TestRawChanges(t *testing.T) {
	db, git, all := objectsOf(t)
	var blobs []string
	for o, is := range all {
		if is[0] == "blob" {
			blobs = append(blobs, string(o))
		}
	}
	slices.Sort(blobs)
	modes := []string{"100644", "100644", "100755", "120000", "160000", "100664"}
	rng := rand.New(rand.NewPCG(1, 2))
	// tree makes a tree of depth 3 at most.
	var tree func(depth int) string
	tree = func(depth int) string {
		var lines string
		for _, name := range []string{"a", "a.b", "b", "c", "ä"} {
			switch n := rng.IntN(6); {
			case n == 0:
			case n < 3 && depth < 3:
				if o := tree(depth + 1); o != "" {
					lines += "040000 tree " + o + "\t" + name + "\n"
				}
			default:
				mode := modes[rng.IntN(len(modes)-1)]
				if rng.IntN(60) == 0 {
					mode = modes[len(modes)-1]
				}
				kind, o := "blob", blobs[rng.IntN(4)]
				if mode == "160000" {
					kind, o = "commit", strings.Repeat(fmt.Sprint(1+rng.IntN(2)), 40) // of another repository
				}
				lines += mode + " " + kind + " " + o + "\t" + name + "\n"
			}
		}
		cmd := exec.Command("git", "mktree", "--missing")
		cmd.Dir = db.common
		cmd.Stdin = strings.NewReader(lines)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	var commits []gitcli.OID
	for i := range 12 {
		commits = append(commits, gitcli.OID(strings.TrimSpace(git("commit-tree", "-m", fmt.Sprint(i), tree(0)))))
	}
	for _, base := range commits {
		for _, head := range commits {
			got, err := db.RawChanges(t.Context(), base, head)
			want, gitErr := gitcli.RawChanges([]byte(git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", string(base), string(head))), nil)
			slices.SortFunc(want, func(a, b gitcli.RawChange) int { return strings.Compare(a.Path, b.Path) })
			slices.SortFunc(got, func(a, b gitcli.RawChange) int { return strings.Compare(a.Path, b.Path) })
			if err != nil || gitErr != nil || !slices.Equal(got, want) {
				t.Fatalf("%s..%s: %v\n%+v\ngit: %v\n%+v", base, head, err, got, gitErr, want)
			}
		}
	}
	if _, err := db.RawChanges(t.Context(), commits[0], gitcli.OID(strings.Repeat("1", 40))); err == nil {
		t.Error("a commit that is not there")
	}
}

// TestRawChangesAreBounded: what git would refuse for the size of its output is refused here as
// well, and so are trees that go on for longer than anybody would wait, though no file is in them.
func TestRawChangesAreBounded(t *testing.T) {
	db, git, all := objectsOf(t)
	mktree := func(lines string) string {
		cmd := exec.Command("git", "mktree", "--missing")
		cmd.Dir, cmd.Stdin = db.common, strings.NewReader(lines)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(tree string) gitcli.OID {
		return gitcli.OID(strings.TrimSpace(git("commit-tree", "-m", "x", tree)))
	}
	var blob string
	for o, is := range all {
		if is[0] == "blob" {
			blob = string(o)
		}
	}
	nothing := mktree("")
	var files, nested string
	for i := range 100 {
		files += fmt.Sprintf("100644 blob %s\tf%d\n", blob, i)
	}
	nested = nothing
	for range 40 { // 2^40 empty directories
		nested = mktree(fmt.Sprintf("040000 tree %s\ta\n040000 tree %s\tb\n", nested, nested))
	}
	base := commit(nothing)
	out := len(git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", string(base), string(commit(mktree(files)))))
	for name, test := range map[string]struct {
		tree  string
		limit int
		large bool
	}{
		"as much as may be": {mktree(files), out + 100, false}, // and the directory itself
		"more than that":    {mktree(files), out - 1, true},
		"directories alone": {nested, 1 << 20, true},
	} {
		changes, err := db.rawChanges(t.Context(), base, commit(test.tree), test.limit)
		if errors.Is(err, gitcli.ErrTooLarge) != test.large || !test.large && (err != nil || len(changes) != 100) {
			t.Errorf("%s: %d changes, %v", name, len(changes), err)
		}
	}
}

// TestSizesOfObjects: the size is that of the content.
func TestSizesOfObjects(t *testing.T) {
	db, _, all := objectsOf(t)
	r := db.NewReader(t.Context())
	defer r.Close()
	for o, is := range all {
		if n, err := r.size(o); err != nil || n != int64(len(is[1])) {
			t.Errorf("%s %s: %d bytes of %d, %v", is[0], o, n, len(is[1]), err)
		}
	}
	if _, err := r.size(gitcli.OID(strings.Repeat("1", 40))); err == nil {
		t.Error("an object that is not there has a size")
	}
	if _, err := r.size("-v"); err == nil {
		t.Error("what is no name has a size")
	}
}
