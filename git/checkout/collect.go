package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// Collected reports what an agent left in its checkout. Every commit that it
// names is in the store, and kept under a hidden ref of the attempt.
type Collected struct {
	// Head is the head of the task's branch; start if the branch is gone or
	// cannot be used.
	Head git.OID
	// Ref is the hidden ref of Head; empty when nothing was committed.
	Ref string
	// Commits counts the commits in start..Head.
	Commits int
	// Changes are the files that differ between start and Head.
	Changes []objects.FileChange
	// Leftover is a commit on top of Head with the files that were not
	// committed; empty when there were none.
	Leftover git.OID
	// Stray is the commit that HEAD was on, when that was not Head and not in
	// the store. It is kept for people and is part of nothing else.
	Stray git.OID
}

// Collect brings the agent's commits into the store and saves what it did not
// commit. The checkout's processes must have ended. A fault of the work is a
// *WorkError; the result then still holds all that could be saved. Any other
// error is one of git or of the machine: the call may be repeated, with the
// same result.
func (c *Checkout) Collect(ctx context.Context, a store.Attempt) (_ Collected, err error) {
	ctx, end := git.Begin(ctx, git.OpCollect)
	defer func() { end(err) }()
	if err := a.Validate(); err != nil {
		return Collected{}, err
	}
	if c.branch == "" {
		return Collected{}, fmt.Errorf("checkout %s: is for reading only", c.name)
	}
	if err := c.pool.unmountForeign(c.name); err != nil {
		return Collected{}, err
	}
	got := Collected{Head: c.start}
	fault := c.collectHead(ctx, a, &got)
	if infrastructure(fault) {
		return got, fault
	}
	var kept []store.Kept
	var leftover git.OID
	if !c.committed || c.head != got.Head {
		leftover, err = c.leftover(ctx, got.Head)
	}
	c.committed = false
	if infrastructure(err) {
		return got, err
	}
	fault = errors.Join(fault, err)
	if leftover != "" {
		got.Leftover = leftover
		kept = append(kept, store.Kept{Ref: a.LeftoverRef(leftover), OID: leftover})
	}
	if got.Stray != "" {
		kept = append(kept, store.Kept{Ref: a.Prefix() + "stray-" + got.Stray.Short(), OID: got.Stray})
	}
	if len(kept) > 0 {
		if err := c.pool.store.KeepAll(ctx, kept...); err != nil {
			return got, err
		}
	}
	if fault != nil {
		return got, fault
	}
	c.head = got.Head
	return got, c.save()
}

// infrastructure reports whether err is a failure of git or of the machine,
// which may pass, and not a fault of the agent's work, which would be found
// again.
func infrastructure(err error) bool {
	var w *git.WorkError
	return err != nil && !errors.As(err, &w)
}

// collectHead imports and keeps the head of the branch, and fills in the facts
// about it. The commits are kept before they are examined: also those that may
// not be merged are not lost.
func (c *Checkout) collectHead(ctx context.Context, a store.Attempt, got *Collected) error {
	s := c.pool.store
	agent, err := openAgentGit(c.Dir())
	if err != nil {
		return err
	}
	defer agent.close()
	head, err := agent.branch(c.branch)
	if err != nil {
		return err
	}
	if err := c.collectStray(ctx, agent, head, got); infrastructure(err) {
		return err
	}
	if head != c.start {
		ours := c.committed && head == c.head // CommitAll has made it, in the store
		if !ours && !s.Complete(ctx, head, c.start) {
			if err := c.importCommit(ctx, agent, head); err != nil {
				return err
			}
		}
		kept, err := s.Keep(ctx, a, head)
		if err != nil {
			return err
		}
		got.Ref = kept.Ref
	}
	got.Head = head
	return c.examine(ctx, got)
}

// collectStray saves the commit that HEAD is on when it is not the branch's
// head and not in the store: an agent may have left the branch and committed
// elsewhere.
func (c *Checkout) collectStray(ctx context.Context, agent *agentGit, head git.OID, got *Collected) error {
	s := c.pool.store
	stray, _, err := agent.head()
	if err != nil || stray == head || s.Complete(ctx, stray, c.start) {
		return err
	}
	if err := c.importCommit(ctx, agent, stray); err != nil {
		return err
	}
	got.Stray = stray
	return nil
}

// importCommit brings a commit of the agent and its ancestors up to start into
// the store, through the quarantine of package objects.
func (c *Checkout) importCommit(ctx context.Context, agent *agentGit, commit git.OID) error {
	limits := c.pool.limits
	return c.pool.store.Import(ctx, commit, c.start, limits, func(to string) error { return agent.copyObjects(to, limits) })
}

// examine fills in the facts about start..Head. It refuses, as a *WorkError, a
// branch that does not descend from start, merge commits, and contents that may
// not be merged.
func (c *Checkout) examine(ctx context.Context, got *Collected) error {
	s := c.pool.store
	if err := s.Descends(ctx, c.start, got.Head); err != nil {
		return err
	}
	r := s.NewReader(ctx)
	defer r.Close()
	commits, err := r.Chain(c.start, got.Head)
	if err != nil {
		return err
	}
	chain := make([]git.OID, len(commits))
	for i, k := range commits {
		chain[i] = k.OID
	}
	got.Commits = len(chain)
	if len(chain) == 0 {
		return nil
	}
	if got.Changes, err = s.Changes(ctx, c.start, got.Head); err != nil {
		return err
	}
	return s.CheckCommits(ctx, chain, c.pool.limits)
}

// leftover saves the working tree as a commit on top of head, and returns it;
// empty if nothing differs from head.
func (c *Checkout) leftover(ctx context.Context, head git.OID) (git.OID, error) {
	if !disk.IsDir(c.Dir()) {
		return "", nil // reported by whoever looked for the branch
	}
	snap, err := c.snapshot(ctx, head)
	if err != nil || snap.tree == "" {
		return "", err
	}
	id := c.pool.store.Identity()
	return c.commitTree(snap.tree, head, id, "Uncommitted work of "+string(c.name)+"\n")
}

// commitTree writes a commit straight into the store's objects, durable; no ref
// names it yet. more are parents after the first one.
func (c *Checkout) commitTree(tree, parent git.OID, author git.Identity, message string, more ...git.OID) (git.OID, error) {
	s := c.pool.store
	now := fmt.Sprintf("%d +0000", time.Now().Unix())
	author, committer := author.OrDefault(), s.Identity()
	return objects.WriteCommit(s.ObjectDir(), objects.Commit{
		Tree: tree, Parents: append([]git.OID{parent}, more...), Message: message,
		Author:    fmt.Sprintf("%s <%s> %s", author.Name, author.Email, now),
		Committer: fmt.Sprintf("%s <%s> %s", committer.Name, committer.Email, now),
	}, true)
}

// Changed reports whether the checkout has commits on top of the one that it
// was checked out at, or files that CommitAll would commit. Processes in it
// must have ended. Errors: as those of CommitAll.
func (c *Checkout) Changed(ctx context.Context) (bool, error) {
	if err := c.pool.unmountForeign(c.name); err != nil {
		return false, err
	}
	agent, err := openAgentGit(c.Dir())
	if err != nil {
		return false, err
	}
	defer agent.close()
	head, err := agent.branch(c.branch)
	if err != nil || head != c.start {
		return err == nil, err
	}
	snap, err := c.snapshot(ctx, head)
	return snap.tree != "", err
}

// CommitAll commits everything in the working tree except .forge/ and what is
// ignored on top of the branch, and puts a new .git in place of the agent's. It
// serves recipes, which change files and know no git. Their processes must have ended: a
// Collect that follows takes the working tree for committed and does not look at it again. Errors:
// ErrNothingToCommit; *WorkError when a file may not be committed (then nothing
// is).
func (c *Checkout) CommitAll(ctx context.Context, message string, author git.Identity) (git.OID, error) {
	if c.branch == "" {
		return "", fmt.Errorf("checkout %s: is for reading only", c.name)
	}
	if err := c.pool.unmountForeign(c.name); err != nil {
		return "", err
	}
	s := c.pool.store
	agent, err := openAgentGit(c.Dir())
	if err != nil {
		return "", err
	}
	defer agent.close()
	head, err := agent.branch(c.branch)
	if err != nil {
		return "", err
	}
	if !s.Complete(ctx, head, c.start) {
		if err := c.importCommit(ctx, agent, head); err != nil {
			return "", err
		}
	}
	snap, err := c.snapshot(ctx, head)
	if err != nil {
		return "", err
	}
	if snap.tree == "" {
		return "", git.ErrNothingToCommit
	}
	if snap.skipped != nil {
		return "", snap.skipped
	}
	commit, err := c.commitTree(snap.tree, head, author, objects.CleanMessage(message))
	if err != nil {
		return "", err
	}
	if err := s.CheckCommits(ctx, []git.OID{commit}, c.pool.limits); err != nil {
		return "", err
	}
	return commit, c.advance(commit, snap.index)
}
