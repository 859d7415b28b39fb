package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// Checkpoint names the commits that a checkout was saved as while its agent
// worked. Another replica can go on from them: it prepares a checkout at Head
// and restores Work. The zero value means that nothing was saved yet.
type Checkpoint struct {
	// Head is the head of the task's branch.
	Head git.OID
	// Work is a commit on top of Head with the working tree, ignored files
	// aside; empty when that equals Head's.
	Work git.OID
	// Tree is the tree of Work. The next Checkpoint compares it, and writes no
	// commit for a tree that is saved already.
	Tree git.OID
	// Last is the commit of the newest saved working tree. Its parents are its
	// head and the commit that was saved before it, so one ref keeps all saved
	// commits.
	Last git.OID
}

// checkpointRef returns the ref under which Checkpoint keeps the attempt's last saved working tree.
func checkpointRef(a store.Attempt) string { return a.Prefix() + "checkpoint" }

// Checkpoint saves the commits and files of a checkout while its agent works,
// as Keep keeps commits; since is the one before, or the zero value. Nothing is
// written when nothing changed. A fault of the work at this moment is a
// *WorkError, beside which the returned Checkpoint is since: an agent may be in
// the middle of a rebase, and the next call may succeed. It must not run at the
// same time as another method of the checkout. No Observer is told: it is done
// every few seconds, for hours.
func (c *Checkout) Checkpoint(ctx context.Context, a store.Attempt, since Checkpoint) (Checkpoint, error) {
	if err := a.Validate(); err != nil {
		return since, err
	}
	if c.branch == "" {
		return since, fmt.Errorf("checkout %s: is for reading only", c.name)
	}
	ctx = git.WithObserver(ctx, nil)
	now := since
	var kept []store.Kept
	var err error
	if now.Head, err = c.checkpointHead(ctx, since.Head); err != nil {
		return since, err
	}
	if now.Head != since.Head && now.Head != c.start {
		kept = append(kept, store.Kept{Ref: a.KeptRef(now.Head), OID: now.Head})
	}
	if err := c.checkpointTree(ctx, &now, since); err != nil {
		return since, err
	}
	if now.Last != since.Last {
		kept = append(kept, store.Kept{Ref: checkpointRef(a), OID: now.Last})
	}
	if len(kept) == 0 {
		return now, nil
	}
	if err := c.pool.store.KeepAll(ctx, kept...); err != nil {
		return since, err
	}
	return now, nil
}

// checkpointHead imports the commits of the branch if its head is not since, with the
// checks of Collect, because other replicas build upon them. It returns the head.
func (c *Checkout) checkpointHead(ctx context.Context, since git.OID) (git.OID, error) {
	agent, err := openAgentGit(c.Dir())
	if err != nil {
		return "", err
	}
	defer agent.close()
	head, err := agent.branch(c.branch)
	if err != nil || head == since || head == c.start {
		return head, err
	}
	s := c.pool.store
	if !s.Complete(ctx, head, c.start) {
		if err := c.importCommit(ctx, agent, head); err != nil {
			return "", err
		}
	}
	return head, c.examine(ctx, &Collected{Head: head})
}

// checkpointTree saves the working tree as a commit unless it equals the one that since names.
func (c *Checkout) checkpointTree(ctx context.Context, now *Checkpoint, since Checkpoint) error {
	snap, err := c.snapshot(ctx, now.Head)
	if err != nil {
		return err
	}
	if snap.tree == "" {
		now.Work, now.Tree = "", ""
		return nil
	}
	if snap.tree == since.Tree && now.Head == since.Head {
		return nil
	}
	var before []git.OID
	if since.Last != "" {
		before = []git.OID{since.Last}
	}
	now.Tree = snap.tree
	now.Work, err = c.commitTree(snap.tree, now.Head, c.pool.store.Identity(), "Work of "+string(c.name)+" under way\n", before...)
	now.Last = now.Work
	return err
}

// Restore brings the files of a checkout that Prepare made to those of a
// Checkpoint's Work, as uncommitted changes. The store must have that commit.
func (c *Checkout) Restore(ctx context.Context, work git.OID) error {
	if c.branch == "" {
		return fmt.Errorf("checkout %s: is for reading only", c.name)
	}
	c.pool.setIndexed(string(c.name), "")
	if _, err := git.Run(ctx, c.tree(c.own("index")), "read-tree", "--reset", "-u", string(work)); err != nil {
		return err
	}
	return disk.CopyIndex(c.own("index"), c.pool.path(string(c.name), ".git", "index"))
}

// Unlock makes a checkout that Recover returned usable again: the locks of git
// processes that were killed in it go. They must have ended. Error: ErrMissing when its
// .git is damaged, so that it has to be prepared anew.
func (c *Checkout) Unlock() error {
	agent, err := openAgentGit(c.Dir())
	if err != nil {
		return fmt.Errorf("checkout %s: %w: %w", c.name, git.ErrMissing, err)
	}
	defer agent.close()
	if _, err := agent.branch(c.branch); err != nil {
		return fmt.Errorf("checkout %s: %w: %w", c.name, git.ErrMissing, err)
	}
	var errs []error
	for _, name := range []string{"index", "HEAD", "ORIG_HEAD", "config", "packed-refs", "refs/stash", c.branch.Ref()} {
		if err := agent.root.Remove(".git/" + name + ".lock"); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
