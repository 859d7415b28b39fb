package pending

import (
	"context"
	"errors"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Report prints the ruling on an event that was sent: done if it was applied, and the reason if it
// was ignored or not decided yet. A refusal is not printed but returned as an error.
func Report(a *kit.App, who, done string, r forge.Ruling) error {
	switch r.Decision {
	case forge.Applied:
		fmt.Fprintf(a.Out, "%s %s\n", who, done)
	case forge.Ignored:
		fmt.Fprintf(a.Out, "%s unchanged: %s\n", who, r.Reason)
	case forge.Refused:
		return fmt.Errorf("%s: %s", who, r.Reason)
	default:
		fmt.Fprintf(a.Out, "%s accepted; %s\n", who, r.Reason)
	}
	return nil
}

// Ruled is the ruling on one choice, as programs read it.
type Ruled struct {
	ID       string         `json:"id"               yaml:"id"`
	Decision forge.Decision `json:"decision"         yaml:"decision"` // empty: no runner has decided yet
	Reason   string         `json:"reason,omitempty" yaml:"reason,omitempty"`
}

// Batch sends choices about several intents. One that is refused does not keep the others
// back: what became of each is printed as it comes, or with a format for programs at the
// end, and the refusals are one error.
type Batch struct {
	App    *kit.App
	Format render.Format
	GoesOn bool // a run has to go on with the intents, and End says which

	list []Ruled
	errs []error
}

// Send sends an event and prints what became of it. Who names in print whom it is about,
// and done what has become of that once it is applied.
func (b *Batch) Send(ctx context.Context, t *target.Target, who, done string, ev forge.Event) {
	ruling, err := t.Ask(ctx, ev)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", who, err)
	case b.Format.Data() && ruling.Decision != forge.Refused:
		b.list = append(b.list, Ruled{who, ruling.Decision, ruling.Reason})
	default:
		err = Report(b.App, who, done, ruling)
	}
	b.Fail(err)
}

// Fail adds an error of one of the batch, so that the others are sent nevertheless.
func (b *Batch) Fail(err error) { b.errs = append(b.errs, err) }

// Err returns the refusals and failures so far, nil if there were none.
func (b *Batch) Err() error { return errors.Join(b.errs...) }

// End prints the rulings for programs, and returns the refusals and failures. If there are
// none it says who goes on.
func (b *Batch) End(t *target.Target) error {
	if b.Format.Data() && len(b.list) > 0 {
		if err := b.Format.Write(b.App.Out, b.list); err != nil {
			return err
		}
	}
	if err := b.Err(); err != nil || !b.GoesOn {
		return err
	}
	b.App.Say("%s", t.Next())
	return nil
}
