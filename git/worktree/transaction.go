package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// moveRef moves the branch in a git ref transaction and calls while, the function, when
// it is prepared: the branch, and HEAD of m.GitDir if it is on the branch, are then
// locked and known to be at the old value, so no commit, switch or reset of a person
// can come between. When while fails, or this process dies, git aborts the transaction.
//
// That the new commit descends from the old is found out while git prepares. Error:
// *WorkError (Rewritten).
func (repo *Repository) moveRef(ctx context.Context, m move, hold []*os.File, while func() error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	descends := make(chan error, 1)
	go func() { descends <- repo.Descends(ctx, m.Old, m.New) }()
	tx, err := repo.beginTransaction(ctx, m, hold)
	if err == nil {
		err = tx.say("start", "update "+m.Branch.Ref()+" "+string(m.New)+" "+string(m.Old), "prepare")
		if err != nil {
			err = repo.whyNotPrepared(ctx, m, tx.abort(err))
			tx = nil
		}
	}
	if e := <-descends; e != nil {
		err = e
	}
	switch {
	case tx == nil:
		return err
	case err == nil:
		err = while()
	}
	if err != nil {
		return errors.Join(err, tx.end("abort"))
	}
	return tx.end("commit")
}

// whyNotPrepared returns ErrMoved if the branch has moved, and ErrBusy if another
// process holds its lock.
func (repo *Repository) whyNotPrepared(ctx context.Context, m move, err error) error {
	head, e := repo.Head(ctx, m.Branch)
	switch {
	case ctx.Err() != nil || e != nil:
		return errors.Join(err, e)
	case head != m.Old:
		return fmt.Errorf("branch %s is at %s: %w", m.Branch, head.Short(), git.ErrMoved)
	case strings.Contains(git.Stderr(err), ".lock"):
		return fmt.Errorf("%w: %w", git.ErrBusy, err)
	}
	return err
}

// transaction is a running git update-ref --stdin. When its input ends before
// "commit", also because this process died, git aborts it and lets go of its
// locks.
type transaction struct {
	git    *git.Process
	cancel context.CancelFunc
}

// beginTransaction starts git in the working tree's git directory, so that the
// reflog of HEAD is written, too.
func (repo *Repository) beginTransaction(ctx context.Context, m move, hold []*os.File) (*transaction, error) {
	// Once begun it is finished: cancelling may not leave it half done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*moveTimeout)
	c := git.Command{Dir: m.GitDir, GitDir: m.GitDir, Env: repo.committer(), Hold: hold}
	p, err := c.Start(ctx, "update-ref", "-m", "pfl-forge: merge "+m.New.Short(), "--stdin")
	if err != nil {
		cancel()
		return nil, err
	}
	return &transaction{git: p, cancel: cancel}, nil
}

// say sends commands and waits for git's "ok" to those that are answered.
func (t *transaction) say(lines ...string) error {
	for _, l := range lines {
		if _, err := io.WriteString(t.git.In, l+"\n"); err != nil {
			return err
		}
		verb, _, _ := strings.Cut(l, " ")
		if verb == "update" {
			continue
		}
		answer, err := t.git.Out.ReadString('\n')
		if err != nil {
			return err
		}
		if answer != verb+": ok\n" {
			return fmt.Errorf("git update-ref: %s answered %q", verb, answer)
		}
	}
	return nil
}

// end says "commit" or "abort" and waits for git to end.
func (t *transaction) end(verb string) error {
	if err := t.say(verb); err != nil {
		return t.abort(err)
	}
	defer t.cancel()
	return t.git.Wait()
}

// abort closes git's input, on which git releases its locks, and returns git's error output.
func (t *transaction) abort(err error) error {
	defer t.cancel()
	if e := t.git.Wait(); e != nil {
		return e
	}
	return err
}
