// Package bare has the repositories of a forge for tests: bare ones of git, to which agents push and
// which the forge merges.
//
// All of it is git itself, run as a process: a commit, a conflict and a patch are those of a real
// forge, so that a test cannot be right by a model of git that is wrong.
package bare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// Repo is a repository, by its folder. Its zero value is none.
type Repo struct{ Dir string }

// Run runs git in the repository, and returns what it printed without the last line's end.
func (r Repo) Run(stdin string, args ...string) (string, error) {
	c := git.Command{Dir: r.Dir, GitDir: r.Dir, Config: []string{"user.name=forge", "user.email=forge@example.test"}}
	if stdin != "" {
		c.Stdin = strings.NewReader(stdin)
	}
	out, err := git.Run(context.Background(), c, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// must is Run for what cannot fail.
func (r Repo) must(args ...string) string {
	out, err := r.Run("", args...)
	if err != nil {
		panic(err)
	}
	return out
}

// Init makes the folder, with a first commit on main that has a readme.
func (r Repo) Init(readme string) {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		panic(err)
	}
	r.must("init", "--quiet", "--bare", "--template=", "--initial-branch=main", r.Dir)
	if _, err := r.Commit("main", "", "README.md", []byte(readme), "Initial commit"); err != nil {
		panic(err)
	}
}

// Head returns the commit of a branch; empty if there is none.
func (r Repo) Head(branch string) string {
	out, err := r.Run("", "rev-parse", "--verify", "--quiet", "refs/heads/"+branch+"^{commit}")
	if err != nil {
		return ""
	}
	return out
}

// Commit puts a file of the top folder on a branch, as one commit.
func (r Repo) Commit(branch, parent, name string, content []byte, message string) (string, error) {
	blob, err := r.Run(string(content), "hash-object", "-w", "--stdin")
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
	tree, err := r.Run(strings.Join(entries, "\n")+"\n", "mktree")
	if err != nil {
		return "", err
	}
	commit := r.must(append(args, tree)...)
	r.must("update-ref", "refs/heads/"+branch, commit)
	return commit, nil
}

// Contains reports whether a commit is another one or has it among those before it.
func (r Repo) Contains(commit, other string) bool {
	_, err := r.Run("", "merge-base", "--is-ancestor", other, commit)
	return err == nil
}

// Patch returns an id of the change of a head. A rebase leaves it as it is. For a change that is empty
// it is the head itself.
func (r Repo) Patch(base, head string) string {
	diff, err := r.Run("", "diff", "--no-color", base+"..."+head)
	if err != nil || diff == "" {
		return head
	}
	out, err := r.Run(diff+"\n", "patch-id", "--stable")
	if err != nil {
		return head
	}
	id, _, _ := strings.Cut(out, " ")
	return id
}

// errConflict says that two branches do not merge.
var errConflict = errors.New("they do not merge")

// Merge brings a head onto a base branch, in one of Gitea's ways, and returns the commit that
// the base has then. Ways that it does not know make one commit of the whole change, as a squash does.
func (r Repo) Merge(do, base, head, message string) (string, error) {
	tip := r.Head(base)
	result := head
	if do != "fast-forward-only" && do != "rebase" || !r.Contains(head, tip) {
		tree, err := r.Run("", "merge-tree", "--write-tree", tip, head)
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
	if _, err := r.Run("", "update-ref", "refs/heads/"+base, result, tip); err != nil {
		return "", fmt.Errorf("the base: %w", err)
	}
	return result, nil
}
