// Package trunk is the base branch of a simulated world: a list of commits on
// which two changes conflict if they touch one file. It has no trees: what a
// commit contains is the list of the changes below it.
package trunk

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Commit is a commit on the base branch, or a candidate for it. Its content is
// the list of files that it changes.
type Commit struct {
	// ID names the commit, as a hash does in a repository.
	ID string
	// Files are the ones that it changes.
	Files []string
	// Task is empty for commits that others pushed.
	Task forge.TaskID
	// Patch stays the same when a commit is rebased without a change.
	Patch string
	// Parent is the id of the commit that it was made on.
	Parent string
	// By is the merge that put it on the base branch.
	By forge.Attempt
	// Unproven says that a forge merged it, on another parent than the one that it was verified on.
	Unproven bool
}

// Branch models a base branch. Two changes conflict if they touch one file.
type Branch struct {
	// Main is the base branch, oldest commit first.
	Main []Commit
	// Files are the names that changes choose from: few, so that conflicts are
	// frequent.
	Files []string
	// Heads are the commits that tasks made, by id.
	Heads map[string]Commit
	// Digits is how many digits an id has at least.
	Digits int
	// made counts the ids.
	made int
}

// Init makes a base branch with one commit.
func (r *Branch) Init(rng *rand.Rand) {
	r.Heads = map[string]Commit{}
	r.Main = []Commit{{ID: "c0"}}
	for i := range 1 + rng.IntN(4) {
		r.Files = append(r.Files, fmt.Sprintf("f%d", i))
	}
}

// Tip returns the id of the last commit of the base branch.
func (r *Branch) Tip() string { return r.Main[len(r.Main)-1].ID }

// NewID returns a new commit id.
func (r *Branch) NewID() string {
	r.made++
	return fmt.Sprintf("c%0*d", r.Digits, r.made)
}

// Pick returns one or two files to change.
func (r *Branch) Pick(rng *rand.Rand) []string {
	list := []string{r.Files[rng.IntN(len(r.Files))]}
	if rng.IntN(3) == 0 {
		if f := r.Files[rng.IntN(len(r.Files))]; f != list[0] {
			list = append(list, f)
		}
	}
	return list
}

// Change makes a commit for a task on the tip, which is not on the base branch yet.
func (r *Branch) Change(task forge.TaskID, files []string) Commit {
	c := Commit{ID: r.NewID(), Files: files, Task: task, Parent: r.Tip()}
	c.Patch = "patch-" + c.ID
	r.Heads[c.ID] = c
	return c
}

// Since returns the files that changed on the base branch after a commit.
func (r *Branch) Since(id string) []string {
	var files []string
	for i := len(r.Main) - 1; i >= 0 && r.Main[i].ID != id; i-- {
		files = append(files, r.Main[i].Files...)
	}
	return files
}

// Conflicts returns the files of a change that changed on the base branch too.
func (r *Branch) Conflicts(c Commit) []string {
	var list []string
	for _, f := range r.Since(c.Parent) {
		if slices.Contains(c.Files, f) && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// Rebase returns the change on the tip. It stays the same commit if it is there
// already. changed says that its patch changes on the way, as lines around it
// can do to a real one.
func (r *Branch) Rebase(c Commit, changed bool) Commit {
	if c.Parent == r.Tip() && !changed {
		return c
	}
	n := c
	n.ID, n.Parent = r.NewID(), r.Tip()
	if changed {
		n.Patch = "patch-" + n.ID
	}
	r.Heads[n.ID] = n
	return n
}

// Push moves the base branch to a commit. It returns false if the commit's parent is not the tip.
func (r *Branch) Push(c Commit) bool {
	if c.Parent != r.Tip() {
		return false
	}
	r.Main = append(r.Main, c)
	return true
}

// Merged returns the commit of a task on the base branch; nil if there is none.
func (r *Branch) Merged(task forge.TaskID) *Commit {
	i := slices.IndexFunc(r.Main, func(c Commit) bool { return c.Task == task })
	if i < 0 {
		return nil
	}
	return &r.Main[i]
}

// Content returns the tree of a commit of the base branch: what was put onto it
// so far, whatever the commits.
func (r *Branch) Content(id string) string {
	var tree string
	for _, c := range r.Main {
		tree = c.On(tree)
		if c.ID == id {
			break
		}
	}
	return tree
}

// On returns the tree of a commit on a tree.
func (c Commit) On(tree string) string {
	if c.Task == "" {
		return tree + " " + c.ID
	}
	return tree + " " + c.Patch
}

// Why says that a forge merged a change on another parent than the one that it
// was verified on; empty if it did not.
func (c Commit) Why() string {
	if c.Unproven {
		return "its parent is another"
	}
	return ""
}
