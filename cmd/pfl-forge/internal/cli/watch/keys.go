package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/answer"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/logs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/show"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// press acts on a key of the view. Keys that move come first. Every other key is about
// the intent that is selected, if one is; what is not a key of it is passed over.
func (w *watching) press(ctx context.Context, k console.Key) error {
	switch {
	case k.Name == console.Up || k.Is('k'):
		w.board.Move(-1)
	case k.Name == console.Down || k.Is('j'):
		w.board.Move(1)
	case k.Name == console.PageUp:
		w.board.Move(-10)
	case k.Name == console.PageDown:
		w.board.Move(10)
	case k.Name == console.Tab:
		w.board.NextWaiting()
	case k.Name == console.CtrlL:
		w.screen.Redraw()
	case k.Is('o'):
		w.board.ToggleAll()
	default:
		if s, ok := w.board.Chosen(); ok {
			return w.pressOn(ctx, k, &s)
		}
	}
	return nil
}

// pressOn acts on a key about the intent that is chosen. s is the intent as it was
// shown, and a choice is offered only if it fits that; the rules decide by how it is.
func (w *watching) pressOn(ctx context.Context, k console.Key, s *forge.Summary) error {
	id := s.Key.Intent
	switch {
	case k.Name == console.Enter:
		return w.aside(ctx, true, func() error { return show.Show(ctx, w.app, string(id), render.Table) })
	case k.Is('l'):
		return w.aside(ctx, true, func() error { return logs.PrintIntent(ctx, w.app, id) })
	}
	for _, c := range offered {
		switch {
		case !k.Is(c.Key) || !c.Fits(s):
		case c.Needs(s).Kind == pending.NeedAnswers:
			return w.aside(ctx, false, func() error {
				_, err := answer.Ask(ctx, w.app, w.screen.Console, id)
				return err
			})
		default:
			return w.choose(ctx, s, c)
		}
	}
	return nil
}

// offered are the choices that have a key in the view, the one to settle what waits first.
// Those that end an intent are left to the inbox.
var offered = []*pending.Choice{pending.Approve, pending.Answer, pending.Retry, pending.Resume, pending.Pause}

// keyFor returns the key that the view shows for an intent: that of the choice that ends
// its wait, or that of pausing if it does not wait.
// The board gets it as a parameter, so that package render does not know choices.
func keyFor(s *forge.Summary) string {
	c := pending.Pause
	if i := slices.IndexFunc(offered, func(c *pending.Choice) bool { return c.Fits(s) }); i >= 0 {
		c = offered[i]
	}
	return string(c.Key) + " " + c.Name
}

// choose asks whether a person means a choice, if that is to be asked, and sends it. What
// became of it is shown in place of the keys.
//
// The plan that is sent is the one of the board, so that no plan is approved that came
// later. A refusal is shown and is no error of the view: only the end of the context is.
func (w *watching) choose(ctx context.Context, s *forge.Summary, c *pending.Choice) error {
	id := s.Key.Intent
	if question := c.Sure(s); question != "" {
		sure, err := w.confirm(ctx, question)
		if err != nil || !sure {
			return err
		}
	}
	err := target.Once(ctx, w.app, func(t *target.Target) error {
		ruling, err := t.Ask(ctx, c.Event(t.Key(id), pending.Said{Plan: s.Plan}))
		switch {
		case err != nil:
			return err
		case ruling.Decision == forge.Refused || ruling.Decision == forge.Ignored:
			return fmt.Errorf("%s: %s", id, ruling.Reason)
		}
		if t.Owner { // no run tells of it
			all, err := t.Summaries(ctx)
			w.board.State(all)
			w.board.Idle(true)
			return err
		}
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if w.prompt = string(id) + " " + c.Done; err != nil {
		w.prompt = term.Line(err.Error())
	}
	return nil
}

// next draws the board and waits for a key, for a second at most. pressed is false if none
// came: then the board is out of date. Error: io.EOF at the end of the input.
func (w *watching) next(ctx context.Context) (k console.Key, pressed bool, err error) {
	columns, rows := w.screen.Size()
	w.screen.Draw(w.board.Draw(columns, rows, time.Now(), w.app.Style(w.app.Out), w.prompt))
	return w.screen.Next(ctx, time.Second)
}

// confirm asks a question in place of the keys.
// The board goes on meanwhile. Every key but y is no.
func (w *watching) confirm(ctx context.Context, question string) (bool, error) {
	w.prompt = question + " [y/N]"
	defer func() { w.prompt = "" }()
	for {
		k, pressed, err := w.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case pressed:
			return k.Is('y') || k.Is('Y'), nil
		}
	}
}

// aside gives the terminal back for something that prints, and takes it over again,
// after a key if there is something to read.
// An error of do is shown, and waits for a key so that it can be read; Ctrl-C ends the view.
func (w *watching) aside(ctx context.Context, read bool, do func() error) error {
	var left error
	err := w.screen.Pause(func() {
		if err := do(); err != nil && !errors.Is(err, io.EOF) {
			if left = err; errors.Is(err, console.ErrInterrupted) {
				return
			}
			w.app.Say("%s", w.app.Style(w.app.Err).Bad(kit.Safe(err.Error())))
			left, read = nil, true
		}
		if read {
			fmt.Fprint(w.app.Out, w.app.Style(w.app.Out).Faint("\npress any key to go back "))
			if _, err := w.screen.Key(ctx); err != nil && !errors.Is(err, io.EOF) {
				left = err
			}
			fmt.Fprintln(w.app.Out)
		}
	})
	return errors.Join(left, err)
}
