package checkout

import (
	"os"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// repair brings a directory that a crash may have left in any state to one that the
// other methods know. Checkouts of tasks stay as they are; a warm one without both
// sides goes.
func (p *Pool) repair() error {
	old, err := os.ReadDir(p.path(".trash"))
	if err != nil {
		return err
	}
	for _, e := range old {
		path := p.path(".trash", e.Name())
		if err := unmountAll(path); err != nil {
			return err
		}
		p.empty(path)
	}
	own, err := os.ReadDir(p.path(".own"))
	if err != nil {
		return err
	}
	for _, e := range own {
		if err := p.repairOwn(e.Name()); err != nil {
			return err
		}
	}
	if err := p.repairWarm(); err != nil {
		return err
	}
	var names []string
	for _, e := range own {
		if !strings.HasPrefix(e.Name(), warmPrefix) && disk.Exists(p.path(".own", e.Name())) {
			names = append(names, e.Name())
		}
	}
	return p.loadParked(names)
}

// repairWarm throws away the warm trees that .own knows nothing of.
func (p *Pool) repairWarm() error {
	warm, err := os.ReadDir(p.path(".warm"))
	if err != nil {
		return err
	}
	for _, e := range warm {
		if !disk.Exists(p.path(".own", warmPrefix+e.Name())) {
			if err := p.throw(p.path(".warm", e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// repairOwn discards a checkout of which one half is missing, and removes the locks of
// git processes that are gone.
func (p *Pool) repairOwn(name string) error {
	if !disk.Exists(p.path(".own", name, "index")) || !disk.IsDir(p.treeOf(name)) {
		return p.discard(name)
	}
	_ = os.Remove(p.path(".own", name, "index.lock")) // of a git that is gone, or we would not have the lock
	if n, ok := strings.CutPrefix(name, warmPrefix); ok {
		p.warm = append(p.warm, n)
		if serial, err := strconv.Atoi(n); err == nil {
			p.serial = max(p.serial, serial)
		}
	}
	return nil
}

// unmountForeign unmounts the mounts of an agent in a checkout, before the service
// reads or writes there.
func (p *Pool) unmountForeign(name git.Name) error {
	mounts, err := mountsBelow(p.path(string(name)))
	if err != nil || len(mounts) == 0 {
		return err
	}
	p.log.Warn("something is mounted in a checkout", "checkout", name)
	return unmountAll(p.path(string(name)))
}
