package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
	"github.com/pfl-forge/pfl-forge/git/objects"
)

// Prepare makes a checkout for a task, on branch forge/<task> at a commit of
// the store. It re-uses a finished checkout when there is one; one of the same
// name is started over. Nothing that an agent left in it is there any more: not
// its .git, no ignored or untracked file, no repository inside, no mark in an
// index. Errors: ErrNotFound for a commit that the store does not have,
// ErrClosed.
func (p *Pool) Prepare(ctx context.Context, task git.Name, at git.OID) (*Checkout, error) {
	return p.prepare(ctx, &Checkout{pool: p, name: task, branch: git.TaskBranch(task), start: at, head: at})
}

// View makes a checkout of a commit for reading, with a detached HEAD; Collect
// and CommitAll refuse it. It shares names with those of Prepare. Errors are those of Prepare.
func (p *Pool) View(ctx context.Context, name git.Name, at git.OID) (*Checkout, error) {
	return p.prepare(ctx, &Checkout{pool: p, name: name, start: at, head: at})
}

// ViewInTurn is View for what is over soon, such as a run of commands: it may wait for another
// one of ViewInTurn to be released, so whoever has one must not wait for anything else. Errors
// are those of View, and that of ctx.
func (p *Pool) ViewInTurn(ctx context.Context, name git.Name, at git.OID) (*Checkout, error) {
	return p.prepare(ctx, &Checkout{pool: p, name: name, inTurn: true, start: at, head: at})
}

// Reopen returns the checkout of a task as its agent left it, if head was the last
// commit collected from it and the branch is still there. Otherwise it returns
// ErrMissing: Prepare it then.
func (p *Pool) Reopen(task git.Name, head git.OID) (*Checkout, error) {
	c, undo, err := p.resume(task)
	if err != nil {
		return nil, err
	}
	err = c.reopen(head)
	if err == nil {
		err = c.inUse()
	}
	if err != nil {
		undo()
		return nil, err
	}
	return c, nil
}

// reopen returns ErrMissing unless the checkout is at head, for us and for its agent.
func (c *Checkout) reopen(head git.OID) error {
	if c.head != head {
		return fmt.Errorf("checkout %s at %s: %w", c.name, head.Short(), git.ErrMissing)
	}
	if err := c.pool.unmountForeign(c.name); err != nil {
		return err
	}
	a, err := openAgentGit(c.Dir())
	if err != nil {
		return fmt.Errorf("checkout %s: %w: %w", c.name, git.ErrMissing, err)
	}
	defer a.close()
	if got, on, err := a.head(); err != nil || got != head || on != c.branch {
		return fmt.Errorf("checkout %s: its branch is elsewhere: %w", c.name, git.ErrMissing)
	}
	return nil
}

// isClosed reports whether Close was called. Afterwards the directory may
// belong to another process.
func (p *Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// prepare marks the name as in use before anything is made, so that the pool
// counts it and takes the tree of no other checkout in its place. After an
// error that left no directory the name is free again. What is for reading leaves none:
// no later attempt goes on in it.
func (p *Pool) prepare(ctx context.Context, c *Checkout) (*Checkout, error) {
	if p.isClosed() {
		return nil, git.ErrClosed
	}
	if _, err := git.ParseName(string(c.name)); err != nil {
		return nil, err
	}
	if err := p.enter(ctx, c); err != nil {
		return nil, err
	}
	ctx, end := git.Begin(ctx, git.OpCheckout)
	made, err := p.make(ctx, c)
	end(err)
	if err != nil {
		if c.branch == "" {
			err = errors.Join(err, p.discard(string(c.name)))
		}
		if !disk.IsDir(c.Dir()) {
			p.forget(string(c.name))
		}
		p.leave(c)
	}
	return made, err
}

// make fills a checkout whose name is in use: in the directory of that name if
// it is whole, or in a tree that the pool takes from another one, or in a new
// one. A used tree that cannot be filled is thrown away and replaced by a new
// one.
func (p *Pool) make(ctx context.Context, c *Checkout) (*Checkout, error) {
	if !p.store.Has(ctx, c.start) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("commit %s: %w", c.start, git.ErrNotFound)
	}
	reuse := disk.IsDir(c.Dir()) && disk.Exists(c.own("index"))
	if reuse {
		if err := unmountAll(c.Dir()); err != nil {
			return nil, err
		}
	} else {
		if err := p.discard(string(c.name)); err != nil {
			return nil, err
		}
		var err error
		if reuse, err = p.take(string(c.name)); err != nil {
			return nil, err
		}
	}
	if reuse {
		err := c.fill(ctx, true)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		p.log.WarnContext(ctx, "a warm checkout cannot be used", "checkout", c.name, "error", err)
		if err := p.discard(string(c.name)); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{c.Dir(), c.own("")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return c, c.fill(ctx, false)
}

// fill makes the working tree equal the start commit. state.json goes first and
// comes last, so a crash in between leaves a checkout that nothing mistakes for
// a whole one. It can be cut off anywhere and done again. used says that the
// tree was filled before.
func (c *Checkout) fill(ctx context.Context, used bool) error {
	if err := errors.Join(disk.IgnoreMissing(os.Remove(c.own("state.json"))), disk.IgnoreMissing(os.Remove(c.own("index.lock")))); err != nil {
		return err
	}
	if used {
		if err := c.pool.throw(filepath.Join(c.Dir(), ".git")); err != nil {
			return err
		}
	}
	had := git.OID("")
	if used {
		had = c.pool.indexedAt(string(c.name))
	}
	c.pool.setIndexed(string(c.name), "")
	if err := c.files().fill(ctx, c.start, used, had); err != nil {
		return err
	}
	c.pool.setIndexed(string(c.name), c.start)
	if err := c.freshGit(); err != nil {
		return err
	}
	return c.save()
}

// freshGit writes the .git that the agent works with. It borrows the store's objects;
// everything in it is new.
func (c *Checkout) freshGit() error {
	git := filepath.Join(c.Dir(), ".git")
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads/forge", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(git, d), 0o755); err != nil {
			return err
		}
	}
	id := c.pool.store.Identity()
	files := map[string]string{
		"objects/info/alternates": c.pool.store.ObjectDir() + "\n",
		"info/exclude":            objects.ExcludeForge,
		"HEAD":                    string(c.start) + "\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n" +
			"[user]\n\tname = \"" + id.Name + "\"\n\temail = \"" + id.Email + "\"\n[gc]\n\tauto = 0\n",
	}
	if c.branch != "" {
		files["HEAD"] = "ref: " + c.branch.Ref() + "\n"
		files[c.branch.Ref()] = string(c.head) + "\n"
	}
	if b := c.pool.store.Shallow(); b != nil {
		files["shallow"] = string(b)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(git, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return disk.CopyIndex(c.own("index"), filepath.Join(git, "index"))
}
