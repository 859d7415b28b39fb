package git

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Collected reports what an agent left in its checkout. Every commit that it names is kept under a hidden ref.
type Collected struct {
	Head     OID          // the head of the task's branch; the last known one when the branch is gone
	Tree     OID          // of Head
	Ref      string       // the hidden ref of Head; empty when nothing was committed
	Commits  int          // in start..Head
	Changes  []FileChange // between start and Head
	Leftover OID          // a commit on top of Head with what was not committed; empty when nothing was left
	Stray    OID          // what HEAD was on, when it was elsewhere than Head; kept, and part of nothing else
}

// Collect brings the agent's commits into the store and saves what it did not commit. The checkout's processes must
// have ended. A fault of the work is a *WorkError; the result then still holds all that could be saved.
func (c *Checkout) Collect(ctx context.Context, a Attempt) (Collected, error) {
	if err := a.validate(); err != nil {
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
	var kept []Kept
	leftover, err := c.leftover(ctx, got.Head)
	if infrastructure(err) {
		return got, err
	}
	fault = errors.Join(fault, err)
	if leftover != "" {
		got.Leftover = leftover
		kept = append(kept, Kept{Ref: a.LeftoverRef(leftover), OID: leftover})
	}
	if got.Stray != "" {
		kept = append(kept, Kept{Ref: a.prefix() + "stray-" + got.Stray.Short(), OID: got.Stray})
	}
	if len(kept) > 0 {
		if err := c.pool.store.keep(ctx, kept...); err != nil {
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
	var w *WorkError
	return err != nil && !errors.As(err, &w)
}

func (c *Checkout) collectHead(ctx context.Context, a Attempt, got *Collected) error {
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
		if !s.complete(ctx, head, c.start) {
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
func (c *Checkout) collectStray(ctx context.Context, agent *agentGit, head OID, got *Collected) error {
	s := c.pool.store
	stray, _, err := agent.head()
	if err != nil || stray == head || s.complete(ctx, stray, c.start) {
		return err
	}
	if err := c.importCommit(ctx, agent, stray); err != nil {
		return err
	}
	got.Stray = stray
	return nil
}

// importCommit brings a commit of the agent into the store.
func (c *Checkout) importCommit(ctx context.Context, agent *agentGit, commit OID) error {
	limits := c.pool.limits
	return c.pool.store.Import(ctx, commit, c.start, limits, func(to string) error { return agent.copyObjects(to, limits) })
}

// examine fills in the facts about start..Head and refuses what may not be merged.
func (c *Checkout) examine(ctx context.Context, got *Collected) error {
	s := c.pool.store
	var err error
	if got.Tree, err = s.Tree(ctx, got.Head); err != nil {
		return err
	}
	if err := s.Descends(ctx, c.start, got.Head); err != nil {
		return err
	}
	r := s.readObjects(ctx)
	defer r.close()
	commits, err := r.chain(c.start, got.Head)
	if err != nil {
		return err
	}
	chain := make([]OID, len(commits))
	for i, k := range commits {
		chain[i] = k.oid
	}
	got.Commits = len(chain)
	if len(chain) == 0 {
		return nil
	}
	if got.Changes, err = s.Changes(ctx, c.start, got.Head); err != nil {
		return err
	}
	return s.checkCommits(ctx, chain, c.pool.limits)
}

// leftover saves the working tree as a commit on top of head, if it differs from it.
func (c *Checkout) leftover(ctx context.Context, head OID) (OID, error) {
	if !isDir(c.Dir()) {
		return "", nil // reported by whoever looked for the branch
	}
	snap, err := c.snapshot(ctx, head)
	if err != nil || snap.tree == "" {
		return "", err
	}
	id := c.pool.store.Identity()
	return c.commitTree(snap.tree, head, id, "Uncommitted work of "+string(c.name)+"\n")
}

func (c *Checkout) commitTree(tree, parent OID, author Identity, message string, more ...OID) (OID, error) {
	s := c.pool.store
	now := fmt.Sprintf("%d +0000", time.Now().Unix())
	author, committer := author.orDefault(), s.Identity()
	return writeCommit(s.ObjectDir(), commitData{
		tree: tree, parents: append([]OID{parent}, more...), message: message,
		author:    fmt.Sprintf("%s <%s> %s", author.Name, author.Email, now),
		committer: fmt.Sprintf("%s <%s> %s", committer.Name, committer.Email, now),
	}, true)
}

// CommitAll commits everything in the working tree except .forge/ and what is ignored on top of the branch,
// and puts a new .git in place of the agent's. Errors: ErrNothingToCommit; *WorkError when something may not be
// committed (then nothing is).
func (c *Checkout) CommitAll(ctx context.Context, message string, author Identity) (OID, error) {
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
	if !s.complete(ctx, head, c.start) {
		if err := c.importCommit(ctx, agent, head); err != nil {
			return "", err
		}
	}
	snap, err := c.snapshot(ctx, head)
	if err != nil {
		return "", err
	}
	if snap.tree == "" {
		return "", ErrNothingToCommit
	}
	if snap.skipped != nil {
		return "", snap.skipped
	}
	commit, err := c.commitTree(snap.tree, head, author, cleanMessage(message))
	if err != nil {
		return "", err
	}
	if err := s.checkCommits(ctx, []OID{commit}, c.pool.limits); err != nil {
		return "", err
	}
	return commit, c.advance(commit, snap.index)
}
