package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// press does what a key says.
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

// pressOn does what a key says about an intent.
func (w *watching) pressOn(ctx context.Context, k console.Key, s *forge.Summary) error {
	id := s.Key.Intent
	switch {
	case k.Name == console.Enter:
		return w.aside(ctx, true, func() error { return w.app.show(ctx, string(id), render.Table) })
	case k.Is('l'):
		return w.aside(ctx, true, func() error { return w.app.printLog(ctx, id) })
	case k.Is('e') && s.Waiting == forge.WaitingClarification:
		return w.aside(ctx, false, func() error {
			_, err := w.app.askQuestions(ctx, w.screen.Console, id)
			return err
		})
	case k.Is('a') && s.Waiting == forge.WaitingApproval:
		question := fmt.Sprintf("approve %s, risk %s, %d tasks, plan %s?", id, s.Risk, s.TaskCount, s.Plan)
		return w.decide(ctx, id, question, "approved", forge.Event{Message: &forge.Approve{Plan: s.Plan}})
	case k.Is('t') && (s.Waiting == forge.WaitingFailed || s.Waiting == forge.WaitingDirty || s.Waiting == forge.WaitingBudget):
		return w.decide(ctx, id, fmt.Sprintf("try %s again?", id), "retried", forge.Event{Message: &forge.Retry{}})
	case k.Is('u') && s.Waiting == forge.WaitingPaused:
		return w.decide(ctx, id, "", "resumed", forge.Event{Message: &forge.Resume{}})
	case k.Is('p') && !s.Status.Ended() && s.Waiting != forge.WaitingPaused:
		return w.decide(ctx, id, fmt.Sprintf("pause %s?", id), "paused", forge.Event{Message: &forge.Pause{}})
	}
	return nil
}

// decide asks whether a person means it, if there is a question, and sends what they
// want. What became of it is shown in place of the keys.
func (w *watching) decide(ctx context.Context, id forge.IntentID, question, done string, ev forge.Event) error {
	if question != "" {
		sure, err := w.confirm(ctx, question)
		if err != nil || !sure {
			return err
		}
	}
	err := w.app.once(ctx, func(t *target) error {
		ev.To = t.key(id)
		ruling, err := t.ask(ctx, ev)
		switch {
		case err != nil:
			return err
		case ruling.Decision == forge.Refused || ruling.Decision == forge.Ignored:
			return fmt.Errorf("%s: %s", id, ruling.Reason)
		}
		if t.owner { // no run tells of it
			all, err := t.summaries(ctx)
			w.board.State(all)
			w.board.Idle(true)
			return err
		}
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if w.prompt = string(id) + " " + done; err != nil {
		w.prompt = term.Line(err.Error())
	}
	return nil
}

// confirm asks a question in place of the keys.
func (w *watching) confirm(ctx context.Context, question string) (bool, error) {
	w.prompt = question + " [y/n]"
	defer func() { w.prompt = "" }()
	for {
		columns, rows := w.screen.Size()
		w.screen.Draw(w.board.Draw(columns, rows, time.Now(), w.app.style(w.app.out), w.prompt))
		k, pressed, err := w.screen.Next(ctx, time.Second)
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
func (w *watching) aside(ctx context.Context, read bool, do func() error) error {
	var left error
	err := w.screen.Pause(func() {
		if err := do(); err != nil && !errors.Is(err, io.EOF) {
			if left = err; errors.Is(err, console.ErrInterrupted) {
				return
			}
			w.app.say("%s", w.app.style(w.app.err).Bad(safe(err.Error())))
			left, read = nil, true
		}
		if read {
			fmt.Fprint(w.app.out, w.app.style(w.app.out).Faint("\nany key goes back "))
			if _, err := w.screen.Key(ctx); err != nil && !errors.Is(err, io.EOF) {
				left = err
			}
			fmt.Fprintln(w.app.out)
		}
	})
	return errors.Join(left, err)
}
