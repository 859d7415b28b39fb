package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// realRecipes are recipes as a Go project has them.
const realRecipes = `base_branch: main
parallel_workers: 4
recipes:
  format:
    run: git ls-files '*.go' | xargs gofmt -w
    check: test -z "$(gofmt -l $(git ls-files '*.go'))"
  remark:
    each: git ls-files '*.go' | xargs -n1 dirname | sort -u | head -n 40
    run: for f in "$FORGE_ITEM"/*.go; do printf '\n// A file of %s.\n' "$FORGE_ITEM" >> "$f"; done
    check: for f in "$FORGE_ITEM"/*.go; do tail -n1 "$f" | grep -qx "// A file of $FORGE_ITEM." || exit 1; done
  rename:
    params: [{name: FROM}, {name: TO}]
    run: git grep -lw "$FROM" -- '*.go' | xargs sed -i "s/\b$FROM\b/$TO/g"
    check: '! git grep -nw "$FROM" -- "*.go"'
`

// Recipes over this project itself: what comes out is formatted, complete, builds,
// and passes tests.
func TestOwnRepository(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	r := cloneSelf(t)
	r.write("pfl-forge.yaml", realRecipes)
	r.write("ugly.go", "package forge\n\nfunc   ugly( )   { _ =ParseIntentID }\n")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "begin")
	r.trust()
	base := len(r.subjects())
	packages := strings.Fields(sh(r, "git ls-files '*.go' | xargs -n1 dirname | sort -u | head -n 40"))
	files := len(strings.Fields(sh(r, `for d in `+strings.Join(packages, " ")+`; do ls "$d"/*.go; done`)))
	users := len(strings.Fields(r.git("grep", "-lw", "ParseIntentID", "--", "*.go")))

	r.draft("format", "recipe: format")
	r.draft("remark", "recipe: remark")
	r.draft("rename", "recipe: rename\nwith: {FROM: ParseIntentID, TO: CheckIntentID}") // of one length: it stays formatted
	r.must(0, "run")

	if got, want := len(r.subjects())-base, len(packages)+2; got != want {
		t.Errorf("main has %d new commits, want %d", got, want)
	}
	if got := len(strings.Fields(r.git("grep", "-l", "^// A file of ", "--", "*.go"))); got < files {
		t.Errorf("%d files have the remark, want %d", got, files)
	}
	if got := len(strings.Fields(r.git("grep", "-lw", "CheckIntentID", "--", "*.go"))); got != users {
		t.Errorf("%d files have the new name, want %d", got, users)
	}
	if out, err := r.tryGit("grep", "-lw", "ParseIntentID", "--", "*.go"); err == nil {
		t.Errorf("the old name is left in:\n%s", out)
	}
	if out := r.git("status", "--porcelain"); out != "" {
		t.Errorf("the checked-out files did not follow main:\n%s", out)
	}
	if out := sh(r, "gofmt -l $(git ls-files '*.go')"); out != "" {
		t.Errorf("not formatted:\n%s", out)
	}
	for _, line := range []string{
		"go vet . ./config ./git ./forgedir",
		"go test . ./config ./internal/strictyaml ./internal/term ./services/runner/flow",
	} {
		sh(r, line)
	}
	r.tidy()
}

// cloneSelf returns a clone of the repository that this test is in. Where that is
// not a whole one, the files make a new one.
func cloneSelf(t *testing.T) *repo {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	self := &repo{t: t, dir: root}
	r := &repo{t: t, dir: filepath.Join(t.TempDir(), "self")}
	out, err := self.tryGit("rev-parse", "--show-toplevel", "--is-shallow-repository")
	if err == nil && out == root+"\nfalse" {
		self.git("clone", "-q", "--no-local", "--no-tags", root, r.dir)
		r.git("checkout", "-q", "-B", "main")
	} else {
		copyFiles(t, root, r.dir)
		r.git("init", "-q", "-b", "main")
	}
	r.git("config", "user.name", "A Person")
	r.git("config", "user.email", "person@example.org")
	return r
}

// copyFiles copies a tree, but not what git, tools and builds keep in it.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	const line = `tar -C "$1" --exclude=./.git --exclude=./.forge --exclude=./.tools --exclude=./bin -cf - . | tar -C "$2" -xf -`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line, "sh", from, to)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("copying %s: %v\n%s", from, err, out)
	}
}

// sh runs a command line in the repository and returns what it prints.
func sh(r *repo, line string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "sh", "-c", line)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(r.dir, "go.work"), "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}
