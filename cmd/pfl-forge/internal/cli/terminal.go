package cli

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
)

// terminal returns the terminal with a person at it; false where nobody can be asked.
func (a *app) terminal() (*console.Console, bool) {
	if a.plain() {
		return nil, false
	}
	return console.Open(a.in, a.out)
}

// once decides, and lets go of the store: nobody is kept waiting while a person thinks.
func (a *app) once(ctx context.Context, do func(*target) error) error {
	t, err := a.decider(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	return do(t)
}

// confirm asks a question that is answered with y or n.
func (a *app) confirm(ctx context.Context, c *console.Console, question string) (bool, error) {
	fmt.Fprintf(a.out, "%s [y/n] ", question)
	for {
		k, err := c.Key(ctx)
		switch {
		case err != nil:
			fmt.Fprintln(a.out)
			return false, asInterrupt(err)
		case k.Is('y'), k.Is('Y'):
			fmt.Fprintln(a.out, "yes")
			return true, nil
		case k.Is('n'), k.Is('N'), k.Name == console.Escape:
			fmt.Fprintln(a.out, "no")
			return false, nil
		}
	}
}
