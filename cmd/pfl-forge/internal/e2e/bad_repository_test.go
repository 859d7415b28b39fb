package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// A repository that cannot be worked on is refused with the reason, and nothing is
// made in it. Once it can be again, what was submitted before goes on.
func TestBadRepository(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	config := map[string]string{"pfl-forge.yaml": "recipes: {good: {run: 'echo x > x.txt'}}\n", "f": "f\n"}
	for _, c := range []struct {
		name string
		make func(r *repo) // out of a good repository
		mend func(r *repo) // nil if nothing can
		says string
	}{
		{"nothing", func(r *repo) { remove(r, ".git") }, nil, "not a git repository"},
		{"bare", func(r *repo) { remove(r, "f", "pfl-forge.yaml", ".git"); r.git("init", "-q", "--bare") }, nil, "bare repository"},
		{"no commit", func(r *repo) { remove(r, ".git"); r.git("init", "-q", "-b", "main") }, nil, "no commit yet"},
		{
			"detached HEAD", func(r *repo) { r.git("checkout", "-q", "--detach") },
			func(r *repo) { r.git("checkout", "-q", "main") }, "HEAD is detached",
		},
		{
			"base branch missing", func(r *repo) { r.config("base_branch: nightly") },
			func(r *repo) { r.git("branch", "nightly") }, "branch nightly: the branch does not exist",
		},
		{"rebase", rebasing, func(r *repo) { r.git("rebase", "--abort") }, "a git operation is in progress"},
		{"merge", merging, func(r *repo) { r.git("merge", "--abort") }, "a git operation is in progress"},
		{
			"unknown key", func(r *repo) { r.config("recipies: {}") },
			func(r *repo) { r.config("") }, `pfl-forge.yaml:2: recipies: unknown key; did you mean "recipes"?`,
		},
		{
			"recipe that does nothing", func(r *repo) { r.config("recipes: {good: {check: 'true'}}") },
			func(r *repo) { r.config("") }, "pfl-forge.yaml:1: recipes.good: needs either run or tasks",
		},
		{"config is a bomb", func(r *repo) { r.config(bomb("verify")) }, func(r *repo) { r.config("") }, "verify[0]: has an anchor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepo(t, config)
			pending := c.mend != nil
			if pending {
				r.must(0, "create", "good", "-t", "Good", "--recipe", "good")
			}
			c.make(r)
			for _, args := range [][]string{{"run"}, {"create", "late", "-t", "Late", "--recipe", "good"}} {
				contains(t, args[0], r.must(1, args...).stderr, c.says)
			}
			contains(t, "doctor", r.must(1, "doctor").stdout, "fail")
			if !pending {
				if files, _ := filepath.Glob(filepath.Join(r.dir, ".forge/intents/*")); len(files) > 0 {
					t.Errorf("intents were made: %v", files)
				}
				return
			}
			if s := r.status(); len(s.Intents) != 1 || s.of("good") != "approved" && s.of("good") != "proposed" && s.of("good") != "executing" {
				t.Errorf("there are %+v", s.Intents)
			}
			c.mend(r)
			r.must(0, "run")
			r.wantStatus("done", "good")
			r.tidy()
		})
	}
}

// config commits a pfl-forge.yaml with the recipe good, unless it is given, and
// more.
func (r *repo) config(more string) {
	r.t.Helper()
	text := "recipes: {good: {run: 'echo x > x.txt'}}\n"
	if strings.HasPrefix(more, "recipes:") {
		text = ""
	}
	r.write("pfl-forge.yaml", text+more+"\n")
	r.git("commit", "-q", "-m", "config", "pfl-forge.yaml")
}

func remove(r *repo, names ...string) {
	r.t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// fork makes main and the branch other differ in one place.
func fork(r *repo) {
	r.t.Helper()
	r.git("checkout", "-q", "-b", "other")
	r.write("f", "other\n")
	r.git("commit", "-qam", "other")
	r.git("checkout", "-q", "main")
	r.write("f", "main\n")
	r.git("commit", "-qam", "main")
}

func rebasing(r *repo) {
	r.t.Helper()
	fork(r)
	if out, err := r.tryGit("rebase", "-q", "other"); err == nil {
		r.t.Fatalf("the rebase ended: %s", out)
	}
}

func merging(r *repo) {
	r.t.Helper()
	fork(r)
	if out, err := r.tryGit("merge", "-q", "other"); err == nil {
		r.t.Fatalf("the merge ended: %s", out)
	}
}
