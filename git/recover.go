package git

import "fmt"

// Recover returns the checkout of a task in whatever state a crash left it, to Collect from. Error: ErrMissing
// when there is none.
func (p *Pool) Recover(task Name) (*Checkout, error) {
	if p.isClosed() {
		return nil, ErrClosed
	}
	if _, err := ParseName(string(task)); err != nil {
		return nil, err
	}
	c := &Checkout{pool: p, name: task}
	if err := c.load(); err != nil || c.branch == "" {
		return nil, fmt.Errorf("checkout %s: %w", task, ErrMissing)
	}
	return c, p.settle(string(task))
}

// Retire gives the checkout of that name back for re-use, whatever it was for, if there is one.
func (p *Pool) Retire(name Name) error {
	if _, err := ParseName(string(name)); err != nil {
		return err
	}
	if !isDir(p.path(string(name))) && !isDir(p.path(".own", string(name))) {
		return nil
	}
	return p.retire(string(name))
}
