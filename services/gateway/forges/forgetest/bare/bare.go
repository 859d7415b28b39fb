// Package bare has the repositories of a forge for tests: bare ones of git, to
// which agents push and which the forge merges.
//
// All of it is git itself, run as a process: a commit, a conflict and a patch are those of a real
// forge, so that a test cannot be right by a model of git that is wrong.
package bare

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// Repo is a repository, by its folder. Its zero value is none.
type Repo struct{ Dir string }

// Run runs git in the repository, and returns what it printed without the last line's end.
func (r Repo) Run(stdin string, args ...string) (string, error) {
	return r.as("forge", stdin, args...)
}

// as is Run for a committer of a name.
func (r Repo) as(name, stdin string, args ...string) (string, error) {
	c := git.Command{Dir: r.Dir, GitDir: r.Dir, Config: []string{"user.name=" + name, "user.email=" + name + "@example.test"}}
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

// Patch returns an id of the change of a head. A rebase leaves it as it is. For
// a change that is empty it is the head itself.
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

// read returns a file of main, with its kind in words of git: blob for a file,
// tree for a folder, and 120000 for a link; empty if there is none of that name.
func (r Repo) read(path string) (kind, id, content string) {
	out, err := r.Run("", "ls-tree", "main", "--", path)
	fields := strings.Fields(out)
	if err != nil || len(fields) < 3 {
		return "", "", ""
	}
	kind, id = fields[1], fields[2]
	if fields[0] == "120000" {
		kind = fields[0]
	}
	if kind != "tree" {
		content = r.must("cat-file", "blob", id)
	}
	return kind, id, base64.StdEncoding.EncodeToString([]byte(content))
}

// Contents answers with a file of main as Gitea and GitHub do: a folder is a
// list, and a link has a type of its own.
func (r Repo) Contents(path string) (status int, out any) {
	kind, id, content := r.read(path)
	o := map[string]any{
		"type": "file", "encoding": "base64", "size": len(content), "name": path, "path": path, "content": content, "sha": id,
		"url": "https://x.test", "git_url": nil, "html_url": nil, "download_url": nil,
		"_links": map[string]any{"self": "https://x.test", "git": nil, "html": nil},
	}
	switch kind {
	case "":
		return http.StatusNotFound, nil
	case "tree":
		return http.StatusOK, []any{}
	case "120000":
		o["type"], o["target"] = "symlink", "elsewhere"
		delete(o, "content")
	}
	return http.StatusOK, o
}

// LabFile answers with a file of main as GitLab does, which knows no other
// thing in this place. A link is one with the path as its text.
func (r Repo) LabFile(path string) (status int, out any) {
	kind, id, content := r.read(path)
	if kind == "" || kind == "tree" {
		return http.StatusNotFound, nil
	}
	return http.StatusOK, map[string]any{
		"file_name": path, "file_path": path, "size": len(content), "encoding": "base64", "content": content, "ref": "HEAD", "blob_id": id,
	}
}
