package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// commit is a change on the base branch.
type commit struct {
	id     string
	files  []string
	task   forge.TaskID // empty: somebody else's
	patch  string
	parent string
	by     forge.Attempt // the merge that made it
}

// repo models a base branch. Two changes conflict if they touch one file.
type repo struct {
	main  []commit
	files []string
	heads map[string]commit // of tasks, by id
	made  int
}

func (r *repo) init(rng *rand.Rand) {
	r.heads = map[string]commit{}
	r.main = []commit{{id: "c0"}}
	for i := range 1 + rng.IntN(4) {
		r.files = append(r.files, fmt.Sprintf("f%d", i))
	}
}

func (r *repo) tip() string { return r.main[len(r.main)-1].id }

func (r *repo) id() string {
	r.made++
	return fmt.Sprintf("c%d", r.made)
}

func (r *repo) pick(rng *rand.Rand) []string {
	list := []string{r.files[rng.IntN(len(r.files))]}
	if rng.IntN(3) == 0 {
		if f := r.files[rng.IntN(len(r.files))]; f != list[0] {
			list = append(list, f)
		}
	}
	return list
}

// change makes a task's commit on the tip.
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

// rebase puts a change on the tip. The patch stays what it is unless changed.
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

// push moves the base branch, if its tip is the commit's parent.
func (r *repo) push(c commit) bool {
	if c.parent != r.tip() {
		return false
	}
	r.main = append(r.main, c)
	return true
}

// merged returns the commit of a task on the base branch, if there is one.
func (r *repo) merged(task forge.TaskID) *commit {
	i := slices.IndexFunc(r.main, func(c commit) bool { return c.task == task })
	if i < 0 {
		return nil
	}
	return &r.main[i]
}
