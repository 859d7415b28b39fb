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

// Confirm asks a question that is answered with one key: y is yes, and every other character,
// Escape and Enter are no. Keys that type nothing are passed over; Ctrl-C is ExitInterrupted.
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
		case k.Name == console.Rune, k.Name == console.Escape, k.Name == console.Enter: // so that a "why?" is no yes by its last letter
			fmt.Fprintln(a.Out, "no")
			return false, nil
		}
	}
}
