package forgetest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// run runs git in the repository, and returns what it printed without the last line's end.
func (r *repo) run(stdin string, args ...string) (string, error) {
	c := git.Command{Dir: r.dir, GitDir: r.dir, Config: []string{"user.name=forge", "user.email=forge@example.test"}}
	if stdin != "" {
		c.Stdin = strings.NewReader(stdin)
	}
	out, err := git.Run(context.Background(), c, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// must is run for what cannot fail.
func (r *repo) must(args ...string) string {
	out, err := r.run("", args...)
	if err != nil {
		panic(err)
	}
	return out
}

// head returns the commit of a branch; empty if there is none.
func (r *repo) head(branch string) string {
	out, err := r.run("", "rev-parse", "--verify", "--quiet", "refs/heads/"+branch+"^{commit}")
	if err != nil {
		return ""
	}
	return out
}

// Dir returns the folder of a repository, a bare one of git, to which agents push as to that of
// a real forge.
func (f *Fake) Dir(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.repos[strings.ToLower(name)].dir
}

// Pushed has the forge look at what was pushed to a repository's folder, as a real one does by
// itself: it tells of it.
func (f *Fake) Pushed(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pulls{f}.sync(f.repos[strings.ToLower(name)])
}

// initRepo makes the folder of a repository, with a first commit on main.
func (f *Fake) initRepo(r *repo) {
	r.dir = filepath.Join(f.root, strings.ReplaceAll(r.name, "/", "-")+".git")
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		panic(err)
	}
	r.must("init", "--quiet", "--bare", "--template=", "--initial-branch=main", r.dir)
	if _, err := r.commit("main", "", "README.md", []byte("# "+r.name+"\n"), "Initial commit"); err != nil {
		panic(err)
	}
}

// commit puts a file of the top folder on a branch, as one commit.
func (r *repo) commit(branch, parent, name string, content []byte, message string) (string, error) {
	blob, err := r.run(string(content), "hash-object", "-w", "--stdin")
	if err != nil {
		return "", err
	}
	var entries []string
	args := []string{"commit-tree", "-m", message}
	if parent != "" {
		args = append(args, "-p", parent)
		for line := range strings.SplitSeq(r.must("ls-tree", parent), "\n") {
			if line != "" && !strings.HasSuffix(line, "\t"+name) {
				entries = append(entries, line)
			}
		}
	}
	entries = append(entries, "100644 blob "+blob+"\t"+name)
	tree, err := r.run(strings.Join(entries, "\n")+"\n", "mktree")
	if err != nil {
		return "", err
	}
	commit := r.must(append(args, tree)...)
	r.must("update-ref", "refs/heads/"+branch, commit)
	return commit, nil
}

// makeFile puts a file on a branch, or on a new one, for those who may write.
func (f pulls) makeFile(q *request) (int, any) {
	branch, from := q.in.Branch, q.in.Branch
	if q.in.NewBranch != "" {
		branch = q.in.NewBranch
	}
	content, err := base64.StdEncoding.DecodeString(q.in.Content)
	switch {
	case !q.repo.may(q.user, "write", "admin"), q.repo.rules[branch] != nil:
		return http.StatusForbidden, nil
	case err != nil || q.repo.head(from) == "":
		return http.StatusUnprocessableEntity, nil
	}
	commit, err := q.repo.commit(branch, q.repo.head(from), q.PathValue("path"), content, q.in.Message)
	if err != nil {
		return http.StatusUnprocessableEntity, nil
	}
	f.sync(q.repo)
	return http.StatusCreated, object{"commit": object{"sha": commit}}
}

// contains reports whether a commit is another one or has it among those before it.
func (r *repo) contains(commit, other string) bool {
	_, err := r.run("", "merge-base", "--is-ancestor", other, commit)
	return err == nil
}

// patch returns an id of the change of a head. A rebase leaves it as it is.
func (r *repo) patch(base, head string) string {
	diff, err := r.run("", "diff", "--no-color", base+"..."+head)
	if err != nil || diff == "" {
		return head
	}
	out, err := r.run(diff+"\n", "patch-id", "--stable")
	if err != nil {
		return head
	}
	id, _, _ := strings.Cut(out, " ")
	return id
}

// errConflict says that two branches do not merge.
var errConflict = errors.New("they do not merge")

// merge brings a head onto a base branch, in one of Gitea's ways, and returns the commit that
// the base has then.
func (r *repo) merge(do, base, head, message string) (string, error) {
	tip := r.head(base)
	result := head
	if do != "fast-forward-only" && do != "rebase" || !r.contains(head, tip) {
		tree, err := r.run("", "merge-tree", "--write-tree", tip, head)
		if err != nil || do == "fast-forward-only" {
			return "", errConflict
		}
		tree, _, _ = strings.Cut(tree, "\n")
		args := []string{"commit-tree", "-m", message, "-p", tip}
		if do == "merge" {
			args = append(args, "-p", head)
		}
		result = r.must(append(args, tree)...)
	}
	if _, err := r.run("", "update-ref", "refs/heads/"+base, result, tip); err != nil {
		return "", fmt.Errorf("the base: %w", err)
	}
	return result, nil
}
