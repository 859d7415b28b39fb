package outside

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// Each remark that a task was told of is answered by the next step that brings its
// pull request up to date and has an answer about that very commit: not before,
// and not after. A step that fails, or that saw another commit than its own, has
// answered nothing as far as can be known.

// threads are the remarks of a task that it was told of, and that have no answer
// at the forge as far as the rules can know.
type threads struct {
	// open has, by the number of a remark, the patch that it was about.
	open map[int64]string
	// attempt is the newest to open the pull request, head its commit and patch
	// the change there; done says that it has answered: what has its name then is
	// a look.
	attempt     forge.Attempt
	head, patch string
	done        bool
}

// of returns the remarks of a task.
func (a *Audit) of(t forge.TaskID) *threads {
	if a.threads[t] == nil {
		a.threads[t] = &threads{open: map[int64]string{}}
	}
	return a.threads[t]
}

// wait takes that a task was told of remarks, about what was opened last.
func (a *Audit) wait(t forge.TaskID, list []forge.PullRemark) {
	for _, m := range list {
		if m.Thread != 0 {
			a.of(t).open[m.Thread] = a.of(t).patch
		}
	}
}

// answers returns an error if a step is not to answer the very remarks that wait
// for it, or says of one wrongly whether the change is another one.
func (a *Audit) answers(c *forge.Command) error {
	in, t := c.Pull(), a.of(c.Attempt.Task)
	for _, m := range in.Answers {
		patch, waits := t.open[m.Thread]
		if !waits {
			return fmt.Errorf("%s answers remark %d, which waits for no answer", c.Attempt, m.Thread)
		}
		if m.Changed != (patch != in.PatchID) {
			return fmt.Errorf("%s answers remark %d of patch %s by %s, changed %t", c.Attempt, m.Thread, patch, in.PatchID, m.Changed)
		}
	}
	if len(in.Answers) < len(t.open) {
		return fmt.Errorf("%s answers %d of %d remarks", c.Attempt, len(in.Answers), len(t.open))
	}
	t.attempt, t.head, t.patch, t.done = c.Attempt, in.Head, in.PatchID, false
	return nil
}

// answered takes the answer of a step that saw a pull request: at the commit that
// the step was for, it has answered all.
func (a *Audit) answered(at forge.Attempt, p *forge.PullRequest) {
	t := a.of(at.Task)
	if t.attempt != at || t.done {
		return
	}
	if t.done = true; t.head == p.Head {
		clear(t.open)
	}
}
