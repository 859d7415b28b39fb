package implementer

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/services/implementer/commitmsg"
	"github.com/pfl-forge/pfl-forge/services/implementer/ontip"
)

// write carries out a task that contains the text of a file: it calls no agent and
// needs no checkout. Repeated, it makes the same change.
func (i *Implementer) write(ctx context.Context, j *jobs.Job) error {
	file := j.Command.Task.Write
	path, err := git.ParsePath(file.Path)
	if err != nil {
		return agent.Fail(forge.FailUnsafe, "the file that the task is to write: %v", err)
	}
	base, from := j.Tip, j.Tip
	if t := &j.Command.Task; !j.Command.Implement().Fresh && t.Head != "" {
		if base, from, err = change(ctx, j, t.Base, t.Head, j.Command.To.Intent); err != nil {
			return err
		}
	}
	head, err := j.Store.CommitFile(ctx, from, path, []byte(file.Content), commitmsg.First(j.Command))
	if err != nil {
		return err
	}
	im := &forge.Implementation{Base: string(base), Head: string(head), Unchanged: head == base}
	if head == from {
		im.Summary = file.Path + " is as it should be"
	} else {
		im.Summary = "wrote " + file.Path
		if _, err := j.Store.Keep(ctx, i.newestAttempt(j), head); err != nil {
			return err
		}
		if im.Commits, err = j.Store.Commits(ctx, base, head); err != nil {
			return err
		}
		if im.Files, err = ontip.Files(ctx, j, base, head); err != nil {
			return err
		}
	}
	j.Result.Output = im
	return nil
}
