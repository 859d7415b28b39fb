package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
)

// walk goes through the inbox with a person.
type walk struct {
	app     *app
	console *console.Console
	goesOn  string // who goes on with what was decided
}

// step says what comes after a key.
type step int

const (
	stay  step = iota // ask for another key
	again             // show the entry anew
	next              // go to the next entry
	quit
)

// key is something that a person can do with an entry.
type key struct {
	key  rune
	name string
	fits func(*entry) bool
	do   func(*walk, context.Context, *entry) (step, error)
}

func always(*entry) bool { return true }

func waits(list ...forge.Waiting) func(*entry) bool {
	return func(e *entry) bool {
		return slices.Contains(list, e.Waiting)
	}
}

// keys are in the order in which they are shown.
func keys() []key {
	hasWork := func(e *entry) bool { return len(e.Work)+len(e.Children) > 0 }
	changed := func(e *entry) bool { return e.hasWork(func(w *work) bool { return len(w.Changed) > 0 }) }
	verify := func(e *entry) bool { return e.hasWork(func(w *work) bool { return w.Verify != nil }) }
	return []key{
		{'a', "approve", waits(forge.WaitingApproval), (*walk).approve},
		{'e', "answer", waits(forge.WaitingClarification), (*walk).answer},
		{'t', "try again", waits(forge.WaitingFailed, forge.WaitingDirty, forge.WaitingBudget), (*walk).retry},
		{'u', "resume", waits(forge.WaitingPaused), (*walk).resume},
		{'r', "reject", waits(forge.WaitingApproval, forge.WaitingClarification, forge.WaitingFailed), (*walk).reject},
		{'c', "cancel", always, (*walk).cancel},
		{'p', "plan", hasWork, (*walk).plan},
		{'d', "diff", changed, (*walk).diff},
		{'v', "verify", verify, (*walk).verify},
		{'l', "log", always, (*walk).log},
		{'n', "next", always, func(*walk, context.Context, *entry) (step, error) { return next, nil }},
		{'q', "quit", always, func(*walk, context.Context, *entry) (step, error) { return quit, nil }},
	}
}

func (e *entry) hasWork(fits func(*work) bool) bool {
	for i := range e.Work {
		if fits(&e.Work[i]) {
			return true
		}
	}
	return false
}

// walk goes through the inbox, an entry at a time.
func (a *app) walk(ctx context.Context, c *console.Console) error {
	ids, err := a.waitingIDs(ctx)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		a.say("nothing waits for you")
		return nil
	}
	w := &walk{app: a, console: c}
	for n, id := range ids {
		more, err := w.visit(ctx, id, fmt.Sprintf("%d of %d", n+1, len(ids)))
		if err != nil {
			return asInterrupt(err)
		}
		if !more {
			break
		}
		if n == len(ids)-1 {
			a.say("that was the last one")
		}
	}
	if w.goesOn != "" {
		a.say("%s", w.goesOn)
	}
	return nil
}

// waitingIDs returns the intents that wait for a person.
func (a *app) waitingIDs(ctx context.Context) ([]forge.IntentID, error) {
	t, err := a.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer t.close()
	all, err := t.summaries(ctx)
	var ids []forge.IntentID
	for i := range all {
		if all[i].Waiting != "" {
			ids = append(ids, all[i].Key.Intent)
		}
	}
	return ids, err
}

// look reads an entry as it is now; nil if it waits no more.
func (w *walk) look(ctx context.Context, id forge.IntentID) (*entry, *forge.View, error) {
	t, err := w.app.reader(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer t.close()
	return t.entry(ctx, id)
}

// visit shows an entry until a person is done with it; false ends the walk.
func (w *walk) visit(ctx context.Context, id forge.IntentID, place string) (bool, error) {
	for {
		e, _, err := w.look(ctx, id)
		if err != nil || e == nil {
			return true, err
		}
		fmt.Fprintf(w.app.out, "\n%s  ", w.app.style(w.app.out).Faint(place))
		w.app.printEntry(e)
		after, err := w.ask(ctx, e)
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case after == quit:
			return false, nil
		case after == next:
			return true, nil
		}
	}
}

// ask reads keys until one leads away from the entry.
func (w *walk) ask(ctx context.Context, e *entry) (step, error) {
	for {
		w.prompt(e)
		chosen, err := w.choose(ctx, e)
		if err != nil {
			fmt.Fprintln(w.app.out)
			return quit, err
		}
		fmt.Fprintln(w.app.out, chosen.name)
		after, err := chosen.do(w, ctx, e)
		switch {
		case errors.Is(err, io.EOF):
			w.app.say("left as it is")
		case errors.Is(err, console.ErrInterrupted), ctx.Err() != nil:
			return quit, err
		case err != nil:
			w.app.say("%s", w.app.style(w.app.err).Bad(safe(err.Error())))
			return again, nil
		case after != stay:
			return after, nil
		}
	}
}

func (w *walk) prompt(e *entry) {
	style := w.app.style(w.app.out)
	var parts []string
	for _, k := range keys() {
		if k.fits(e) {
			parts = append(parts, style.Bold(string(k.key))+" "+k.name)
		}
	}
	fmt.Fprintf(w.app.out, "%s > ", strings.Join(parts, "  "))
}

func (w *walk) choose(ctx context.Context, e *entry) (*key, error) {
	for {
		pressed, err := w.console.Key(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range keys() {
			if pressed.Is(k.key) && k.fits(e) {
				return &k, nil
			}
		}
	}
}

// decide sends what a person wants, and says what became of it.
func (w *walk) decide(ctx context.Context, e *entry, done string, ev forge.Event) (step, error) {
	err := w.app.once(ctx, func(t *target) error {
		ev.To = t.key(e.ID)
		ruling, err := t.ask(ctx, ev)
		if err != nil {
			return err
		}
		w.goesOn = t.next()
		return w.app.report(e.ID, done, ruling)
	})
	return next, err
}

func (w *walk) approve(ctx context.Context, e *entry) (step, error) {
	return w.decide(ctx, e, "approved", forge.Event{Message: &forge.Approve{Plan: e.Plan}})
}

func (w *walk) resume(ctx context.Context, e *entry) (step, error) {
	return w.decide(ctx, e, "resumed", forge.Event{Message: &forge.Resume{}})
}

func (w *walk) reject(ctx context.Context, e *entry) (step, error) {
	reason, err := w.console.Line(ctx, "why (Ctrl-D: leave it)? ")
	if err != nil {
		return stay, err
	}
	return w.decide(ctx, e, "rejected", forge.Event{Message: &forge.Reject{Reason: strings.TrimSpace(reason)}})
}

func (w *walk) cancel(ctx context.Context, e *entry) (step, error) {
	sure, err := w.app.confirm(ctx, w.console, "cancel "+string(e.ID)+"? What is integrated stays.")
	if err != nil || !sure {
		return stay, err
	}
	return w.decide(ctx, e, "cancelled", forge.Event{Message: &forge.Cancel{}})
}

func (w *walk) retry(ctx context.Context, e *entry) (step, error) {
	question := "instructions, if any (Ctrl-D: leave it)? "
	if e.Waiting == forge.WaitingBudget {
		question = "what it may cost in all, in US dollars (nothing: as the project says now; Ctrl-D: leave it)? "
	}
	text, err := w.console.Line(ctx, question)
	if err != nil {
		return stay, err
	}
	wish := &forge.Retry{Instructions: strings.TrimSpace(text)}
	if e.Waiting == forge.WaitingBudget {
		if wish, err = moreMoney(wish.Instructions); err != nil {
			return stay, err
		}
	}
	return w.decide(ctx, e, "retried", forge.Event{Message: wish})
}

// moreMoney reads a budget; nothing leaves it as it is.
func moreMoney(text string) (*forge.Retry, error) {
	if text == "" {
		return &forge.Retry{}, nil
	}
	usd, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(usd > 0) || usd > 1e6 {
		return nil, fmt.Errorf("%q is no amount of US dollars", text)
	}
	return &forge.Retry{BudgetUSD: usd}, nil
}

func (w *walk) answer(ctx context.Context, e *entry) (step, error) {
	left, err := w.app.askQuestions(ctx, w.console, e.ID)
	if err != nil || left > 0 {
		return stay, err
	}
	w.app.say("%s has all answers", e.ID)
	return next, nil
}
