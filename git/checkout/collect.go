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

// Collected reports what an agent left in its checkout. Every commit that it names is kept under a hidden ref.
type Collected struct {
	Head     git.OID              // the head of the task's branch; the last known one when the branch is gone
	Ref      string               // the hidden ref of Head; empty when nothing was committed
	Commits  int                  // in start..Head
	Changes  []objects.FileChange // between start and Head
	Leftover git.OID              // a commit on top of Head with what was not committed; empty when nothing was left
	Stray    git.OID              // what HEAD was on, when it was elsewhere than Head; kept, and part of nothing else
}

// Collect brings the agent's commits into the store and saves what it did not commit. The checkout's processes must
// have ended. A fault of the work is a *WorkError; the result then still holds all that could be saved.
func (c *Checkout) Collect(ctx context.Context, a store.Attempt) (Collected, error) {
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
	leftover, err := c.leftover(ctx, got.Head)
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

// infrastructure returns whether err is a failure of git or the machine, and not a fault of the agent's work.
func infrastructure(err error) bool {
	var w *git.WorkError
	return err != nil && !errors.As(err, &w)
}

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
		if !s.Complete(ctx, head, c.start) {
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

// collectStray saves the commit that HEAD is on when it is not the branch's head.
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

// importCommit brings a commit of the agent into the store.
func (c *Checkout) importCommit(ctx context.Context, agent *agentGit, commit git.OID) error {
	limits := c.pool.limits
	return c.pool.store.Import(ctx, commit, c.start, limits, func(to string) error { return agent.copyObjects(to, limits) })
}

// examine fills in the facts about start..Head and refuses what may not be merged.
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

// leftover saves the working tree as a commit on top of head, if it differs from it.
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

// CommitAll commits everything in the working tree except .forge/ and what is ignored on top of the branch,
// and puts a new .git in place of the agent's. Errors: ErrNothingToCommit; *WorkError when something may not be
// committed (then nothing is).
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
