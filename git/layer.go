package git

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// layer is layer.json of a checkout that is an overlay mount: what an agent changes is in .own/<name>/upper, over a tree
// that all checkouts of that commit share.
type layer struct {
	Base string `json:"base"`
	At   OID    `json:"at"`
}

// layerOf returns false for a checkout that has all its files itself.
func (p *Pool) layerOf(name string) (layer, bool) {
	raw, err := os.ReadFile(p.path(".own", name, "layer.json"))
	if err != nil {
		return layer{}, false
	}
	var l layer
	if err := json.Unmarshal(raw, &l); err != nil { // cut off with the power: found to be of no tree
		p.log.Warn("the state of a checkout is damaged", "checkout", name, "error", err)
	}
	return l, true
}

// layered makes the checkout an overlay mount, if there is a tree of its commit.
func (c *Checkout) layered(ctx context.Context) (bool, error) {
	p := c.pool
	t := p.bases.acquire(ctx, c.start)
	if t == nil {
		return false, context.Cause(ctx)
	}
	l := layer{Base: t.name, At: c.start}
	err := p.retire(string(c.name))
	p.mu.Lock()
	p.parked[string(c.name)] = 0
	p.mu.Unlock()
	if err == nil {
		err = c.writeLayer(l)
	}
	if err != nil {
		p.bases.release(t.name)
		return false, err
	}
	if err := c.openLayer(l); err != nil { // from here on the tree is released with the checkout
		p.log.Warn("an overlay checkout cannot be made", "checkout", c.name, "error", err)
		return false, p.retire(string(c.name))
	}
	return true, nil
}

// writeLayer makes our side of it. It is the last file that says that there is one.
func (c *Checkout) writeLayer(l layer) error {
	if err := os.MkdirAll(c.own("upper"), 0o755); err != nil {
		return err
	}
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	// Git never writes into an index: it replaces the file.
	if err := os.Link(c.pool.bases.files(l.Base).index, c.own("index")); err != nil {
		return err
	}
	return writeFile(c.own("layer.json"), raw)
}

func (c *Checkout) openLayer(l layer) error {
	if err := c.pool.mount(string(c.name), l); err != nil {
		return err
	}
	if err := c.freshGit(); err != nil {
		return err
	}
	return c.save()
}

// mount makes the files of an overlay checkout visible.
func (p *Pool) mount(name string, l layer) error {
	if err := p.keeper.start(p.dir, p.lock); err != nil {
		return err
	}
	at := p.path(name)
	if !isDir(at) {
		if err := p.throw(at); err != nil {
			return err
		}
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
	}
	own := p.path(".own", name)
	return mountOverlay(p.bases.files(l.Base).dir, filepath.Join(own, "upper"), filepath.Join(own, "work"), at)
}

// remount is mount in the next life: with the same tree, which is made again should it be damaged.
func (p *Pool) remount(ctx context.Context, name string, l layer) error {
	err := p.bases.again(ctx, l.Base, l.At)
	if err == nil {
		err = p.mount(name, l)
	}
	if err != nil {
		return fmt.Errorf("checkout %s is an overlay mount, and cannot be mounted again: permit it, or remove %s to give its files up: %w",
			name, p.path(".own", name), err)
	}
	return nil
}

// settle takes away what an agent has mounted in a checkout, and puts the checkout back should the agent have unmounted it.
func (p *Pool) settle(name string) error {
	l, ok := p.layerOf(name)
	mounts, err := mountsBelow(p.path(name))
	if err != nil {
		return err
	}
	want := 0
	if ok {
		want = 1
	}
	if len(mounts) == want && (!ok || mounts[0].ours) {
		return nil
	}
	p.log.Warn("something else is mounted in a checkout", "checkout", name)
	if err := unmountAll(p.path(name)); err != nil || !ok {
		return err
	}
	return p.mount(name, l)
}

// unlayer ends an overlay checkout: nothing that was changed in it stays.
func (p *Pool) unlayer(name string, l layer) error {
	// While it is open, it costs nothing to take it away: what the kernel keeps of every file that was looked at goes when it
	// is closed. Without it, that is waited for.
	at, _ := os.OpenFile(p.path(name), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err := errors.Join(unmountAll(p.path(name)), p.discard(name)); err != nil {
		_ = at.Close()
		return err
	}
	p.bases.suspect(l.Base)
	p.trash.Go(func() {
		_ = at.Close()
		p.bases.release(l.Base)
	})
	return nil
}
