package git

import (
	"context"
	"os"
	"strconv"
	"strings"
)

// repair brings a directory that a crash may have left in any state to one that the other methods know. What is mounted
// there is a killed process's, or its agents'. Checkouts of tasks stay as they are; a warm one without both sides goes.
func (p *Pool) repair(ctx context.Context) error {
	if err := unmountBelow(p.dir); err != nil {
		return err
	}
	if err := p.repairTop(); err != nil {
		return err
	}
	if err := p.bases.load(); err != nil {
		return err
	}
	own, err := os.ReadDir(p.path(".own"))
	if err != nil {
		return err
	}
	for _, e := range own {
		if err := p.repairOwn(ctx, e.Name()); err != nil {
			return err
		}
	}
	p.bases.throw(p.bases.trim())
	if err := p.repairWarm(); err != nil {
		return err
	}
	var names []string
	for _, e := range own {
		if !strings.HasPrefix(e.Name(), warmPrefix) && exists(p.path(".own", e.Name())) {
			names = append(names, e.Name())
		}
	}
	return p.loadParked(names)
}

// repairWarm throws warm trees away that have no side of ours.
func (p *Pool) repairWarm() error {
	warm, err := os.ReadDir(p.path(".warm"))
	if err != nil {
		return err
	}
	for _, e := range warm {
		if !exists(p.path(".own", warmPrefix+e.Name())) {
			if err := p.throw(p.path(".warm", e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// repairTop empties the trash and removes what a probe left.
func (p *Pool) repairTop() error {
	old, err := os.ReadDir(p.path(".trash"))
	if err != nil {
		return err
	}
	for _, e := range old {
		p.empty(p.path(".trash", e.Name()))
	}
	top, err := os.ReadDir(p.dir)
	if err != nil {
		return err
	}
	for _, e := range top {
		if strings.HasPrefix(e.Name(), probePrefix) {
			p.empty(p.path(e.Name()))
		}
	}
	return nil
}

// repairOwn looks at our side of one checkout.
func (p *Pool) repairOwn(ctx context.Context, name string) error {
	l, layered := p.layerOf(name)
	if !exists(p.path(".own", name, "index")) || layered && l.At == "" || !layered && !isDir(p.treeOf(name)) {
		return p.discard(name)
	}
	_ = os.Remove(p.path(".own", name, "index.lock")) // of a git that is gone, or we would not have the lock
	if layered {
		return p.remount(ctx, name, l)
	}
	if n, ok := strings.CutPrefix(name, warmPrefix); ok {
		p.warm = append(p.warm, n)
		if serial, err := strconv.Atoi(n); err == nil {
			p.serial = max(p.serial, serial)
		}
	}
	return nil
}
