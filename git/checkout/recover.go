package checkout

import (
	"errors"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// Recover returns the checkout of a task in whatever state a crash left it, to
// Collect from; an agent that is to go on in it needs Unlock first. Error:
// ErrMissing when there is none.
func (p *Pool) Recover(task git.Name) (*Checkout, error) {
	c, undo, err := p.resume(task)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.unmountForeign(task), c.inUse()); err != nil {
		undo()
		return nil, err
	}
	return c, nil
}

// Retire gives the checkout of that name back for re-use, whatever it was for,
// if there is one. It is Release for callers that have no Checkout, such as
// after a restart.
func (p *Pool) Retire(name git.Name) error {
	if _, err := git.ParseName(string(name)); err != nil {
		return err
	}
	if !disk.IsDir(p.path(string(name))) && !disk.IsDir(p.path(".own", string(name))) {
		p.forget(string(name))
		return nil
	}
	return p.retire(string(name))
}
