package kit

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
)

// Terminal returns the terminal with a person at it, which the caller closes. It is false
// where no person can be asked: input or output is no terminal, TERM is dumb, or CI is set.
func (a *App) Terminal() (*console.Console, bool) {
	if a.plain() {
		return nil, false
	}
	return console.Open(a.In, a.Out)
}

// Confirm asks a question that is answered with the key y or n, and waits until one of
// them is pressed. Escape and Enter are n; Ctrl-C is ExitInterrupted.
func (a *App) Confirm(ctx context.Context, c *console.Console, question string) (bool, error) {
	fmt.Fprintf(a.Out, "%s [y/N] ", question)
	for {
		k, err := c.Key(ctx)
		switch {
		case err != nil:
			fmt.Fprintln(a.Out)
			return false, AsInterrupt(err)
		case k.Is('y'), k.Is('Y'):
			fmt.Fprintln(a.Out, "yes")
			return true, nil
		case k.Is('n'), k.Is('N'), k.Name == console.Escape, k.Name == console.Enter:
			fmt.Fprintln(a.Out, "no")
			return false, nil
		}
	}
}
