package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// commit is a commit on the base branch, or a candidate for it. Its content is
// the list of files that it changes.
type commit struct {
	id string
	// files are the ones that it changes.
	files []string
	// task is empty for commits that others pushed.
	task forge.TaskID
	// patch stays the same when a commit is rebased without a change.
	patch string
	// parent is the id of the commit that it was made on.
	parent string
	// by is the merge that put it on the base branch.
	by forge.Attempt
	// unproven says that a forge merged it, on another parent than the one that it was verified on.
	unproven bool
}

// repo models a base branch. Two changes conflict if they touch one file.
type repo struct {
	// main is the base branch, oldest commit first.
	main []commit
	// files are the names that changes choose from: few, so that conflicts are
	// frequent.
	files []string
	// heads are the commits that tasks made, by id.
	heads map[string]commit
	// made counts the ids, which have so many digits at least.
	made, digits int
}

// init makes a base branch with one commit.
func (r *repo) init(rng *rand.Rand) {
	r.heads = map[string]commit{}
	r.main = []commit{{id: "c0"}}
	for i := range 1 + rng.IntN(4) {
		r.files = append(r.files, fmt.Sprintf("f%d", i))
	}
}

// tip returns the id of the last commit of the base branch.
func (r *repo) tip() string { return r.main[len(r.main)-1].id }

// id returns a new commit id.
func (r *repo) id() string {
	r.made++
	return fmt.Sprintf("c%0*d", r.digits, r.made)
}

// pick returns one or two files to change.
func (r *repo) pick(rng *rand.Rand) []string {
	list := []string{r.files[rng.IntN(len(r.files))]}
	if rng.IntN(3) == 0 {
		if f := r.files[rng.IntN(len(r.files))]; f != list[0] {
			list = append(list, f)
		}
	}
	return list
}

// change makes a commit for a task on the tip, which is not on the base branch yet.
func (r *repo) change(task forge.TaskID, files []string) commit {
	c := commit{id: r.id(), files: files, task: task, parent: r.tip()}
	c.patch = "patch-" + c.id
	r.heads[c.id] = c
	return c
}

// since returns the files that changed on the base branch after a commit.
func (r *repo) since(id string) []string {
	var files []string
	for i := len(r.main) - 1; i >= 0 && r.main[i].id != id; i-- {
		files = append(files, r.main[i].files...)
	}
	return files
}

// conflicts returns the files of a change that changed on the base branch too.
func (r *repo) conflicts(c commit) []string {
	var list []string
	for _, f := range r.since(c.parent) {
		if slices.Contains(c.files, f) && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// rebase returns the change on the tip. It stays the same commit if it is there
// already. changed says that its patch changes on the way, as lines around it
// can do to a real one.
func (r *repo) rebase(c commit, changed bool) commit {
	if c.parent == r.tip() && !changed {
		return c
	}
	n := c
	n.id, n.parent = r.id(), r.tip()
	if changed {
		n.patch = "patch-" + n.id
	}
	r.heads[n.id] = n
	return n
}

// push moves the base branch to a commit. It returns false if the commit's parent is not the tip.
func (r *repo) push(c commit) bool {
	if c.parent != r.tip() {
		return false
	}
	r.main = append(r.main, c)
	return true
}

// merged returns the commit of a task on the base branch; nil if there is none.
func (r *repo) merged(task forge.TaskID) *commit {
	i := slices.IndexFunc(r.main, func(c commit) bool { return c.task == task })
	if i < 0 {
		return nil
	}
	return &r.main[i]
}
