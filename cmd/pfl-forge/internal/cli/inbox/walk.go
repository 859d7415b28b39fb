package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/answer"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
)

// walk goes through the inbox with a person, who decides with keys. It holds no connection: each
// look and each decision opens one of its own. It lives for one call of through, in one goroutine.
type walk struct {
	app     *kit.App
	console *console.Console
	left    []forge.IntentID // those that come after the decision that is shown
	goesOn  string           // who goes on with what was decided; empty while nothing was
}

// step says what comes after a key. It is the only answer that a key gives to
// the loop in walk, so that each key can be read by itself.
type step int

const (
	stay  step = iota // ask for another key
	again             // show the decision anew
	next              // go to the next one
	back              // go to the one before
	quit              // end the walk
)

// key is something that a person can do with a decision: make a choice, or look.
type key struct {
	key  rune
	name string
	help string
	do   func(context.Context, *pending.Decision) (step, error)
}

// keys returns the keys for a decision, in the order in which they are shown. The choices
// come first, and those that are about all only if others are left; then the keys that show
// something, which are there only if there is something to show; then those that move. The
// letters of choices are in package pending, the others here, and no two may be the same.
func (w *walk) keys(d *pending.Decision) []key {
	var list []key
	for _, c := range pending.Choices(&d.Summary) {
		list = append(list, key{c.Key, c.Name, c.Help, func(ctx context.Context, d *pending.Decision) (step, error) { return w.choose(ctx, d, c) }})
		if repeatable(c) && len(w.left) > 0 {
			list = append(list, key{unicode.ToUpper(c.Key), c.Name + " all", allHelp(c, &d.Summary), func(ctx context.Context, d *pending.Decision) (step, error) {
				return w.chooseAll(ctx, d, c)
			}})
		}
	}
	if len(d.Work)+len(d.Children) > 0 {
		list = append(list, key{'p', "plan", "show the whole plan, with all reviews", w.plan})
	}
	if slices.ContainsFunc(d.Work, func(t pending.Task) bool { return len(t.Changed) > 0 }) {
		list = append(list, key{'d', "diff", "show the change", w.diff})
	}
	if slices.ContainsFunc(d.Work, func(t pending.Task) bool { return t.Verify != nil || t.Unverified }) {
		list = append(list, key{'v', "verify", "show the output of the verify commands", w.verify})
	}
	leave := func(to step) func(context.Context, *pending.Decision) (step, error) {
		return func(context.Context, *pending.Decision) (step, error) { return to, nil }
	}
	return append(list, key{'l', "log", "show the log", w.log},
		key{'n', "skip", "leave it as it is and go to the next entry", leave(next)},
		key{'b', "back", "go back to the entry before", leave(back)},
		key{'?', "help", "show this list", w.help},
		key{'q', "quit", "leave the inbox; Ctrl-D does the same", leave(quit)})
}

// help prints the keys with what each does with the decision.
func (w *walk) help(_ context.Context, d *pending.Decision) (step, error) {
	for _, k := range w.keys(d) {
		fmt.Fprintf(w.app.Out, "  %s  %s\n", w.app.Style(w.app.Out).Bold(string(k.key)), k.help)
	}
	return stay, nil
}

// through goes through the inbox, one decision after the other. The list of ids
// is made once, at the beginning: what begins to wait later is in the next call.
// After the last one it says who goes on with the decisions, if any was made.
func through(ctx context.Context, a *kit.App, c *console.Console) error {
	ids, err := waitingIDs(ctx, a)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		a.Say("nothing waits for you")
		return nil
	}
	w := &walk{app: a, console: c}
	if err := w.walk(ctx, ids); err != nil {
		return kit.AsInterrupt(err)
	}
	if w.goesOn != "" {
		a.Say("%s", w.goesOn)
	}
	return nil
}

// walk shows the decisions on intents, back and forth, until a person is done with the last
// one or leaves. Those that are decided meanwhile are passed over.
// The way, 1 or -1, is that of the last key, so that going back passes over decided ones backwards.
func (w *walk) walk(ctx context.Context, ids []forge.IntentID) error {
	way := 1
	for n := 0; n < len(ids); n += way {
		if n < 0 {
			w.app.Say("this is the first entry")
			n, way = 0, 1
		}
		w.left = ids[n+1:]
		after, err := w.visit(ctx, ids[n], fmt.Sprintf("%d of %d", n+1, len(ids)))
		switch {
		case err != nil:
			return err
		case after == quit:
			return nil
		case after == next:
			way = 1
		case after == back:
			way = -1
		}
	}
	w.app.Say("that was the last entry")
	return nil
}

// waitingIDs returns the intents that wait for a person. They are sorted by id. Intents that wait
// for a red base branch are one decision (ADR-0083), and only the first of them is returned.
func waitingIDs(ctx context.Context, a *kit.App) ([]forge.IntentID, error) {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	all, err := t.Summaries(ctx)
	var ids []forge.IntentID
	red := false // one decision, however many intents wait for the base branch
	for i := range all {
		if pending.Waits(&all[i]) && !(red && all[i].Waiting == forge.WaitingBase) {
			ids = append(ids, all[i].Key.Intent)
			red = red || all[i].Waiting == forge.WaitingBase
		}
	}
	return ids, err
}

// look returns the decision on an intent as it is now; nil if the intent waits no more.
func (w *walk) look(ctx context.Context, id forge.IntentID) (*pending.Decision, error) {
	t, err := target.Reader(ctx, w.app)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return pending.Load(ctx, t, id)
}

// visit shows a decision until a person is done with it, and returns where they go
// then: stay if it was decided meanwhile, and is passed over. place says which one
// of how many it is, and is printed before the title. Ctrl-D is quit and no error.
func (w *walk) visit(ctx context.Context, id forge.IntentID, place string) (step, error) {
	for {
		d, err := w.look(ctx, id)
		if err != nil || d == nil {
			return stay, err
		}
		fmt.Fprintf(w.app.Out, "\n%s  ", w.app.Style(w.app.Out).Faint(place))
		printDecision(w.app, d)
		after, err := w.ask(ctx, d)
		switch {
		case errors.Is(err, io.EOF):
			return quit, nil
		case err != nil || after != again:
			return after, err
		}
	}
}

// ask reads keys until one leads away from the decision.
//
// Ctrl-D inside a choice, as in the line for a reason, takes back that choice alone. An
// error of a choice is printed, and the decision is shown anew, as it may have changed:
// the inbox goes on. Only Ctrl-C, a signal and a terminal that is gone end it.
func (w *walk) ask(ctx context.Context, d *pending.Decision) (step, error) {
	keys := w.keys(d)
	for {
		w.prompt(keys)
		chosen, err := w.read(ctx, keys)
		if err != nil {
			fmt.Fprintln(w.app.Out)
			return quit, err
		}
		fmt.Fprintln(w.app.Out, chosen.name)
		after, err := chosen.do(ctx, d)
		switch {
		case errors.Is(err, io.EOF):
			w.app.Say("not changed")
		case errors.Is(err, console.ErrInterrupted), ctx.Err() != nil:
			return quit, err
		case err != nil:
			w.app.Say("%s", w.app.Style(w.app.Err).Bad(kit.Safe(err.Error())))
			return again, nil
		case after != stay:
			return after, nil
		}
	}
}

// prompt prints the keys.
// They are in a line of standard output, where the decision is, and the cursor stays behind it.
func (w *walk) prompt(keys []key) {
	style := w.app.Style(w.app.Out)
	var parts []string
	for _, k := range keys {
		parts = append(parts, style.Bold(string(k.key))+" "+k.name)
	}
	fmt.Fprintf(w.app.Out, "%s > ", strings.Join(parts, "  "))
}

// read waits until one of the keys is pressed. Every other key is passed over
// without a word. The case counts: a is about one intent, A about all alike.
func (w *walk) read(ctx context.Context, keys []key) (*key, error) {
	for {
		pressed, err := w.console.Key(ctx)
		if err != nil {
			return nil, err
		}
		for i := range keys {
			if pressed.Is(keys[i].key) {
				return &keys[i], nil
			}
		}
	}
}

// choose asks for what a choice needs, sends it, and says what became of it.
//
// What it needs is asked before a connection is opened. The event names the plan
// that was shown, so that an approval of a plan that was replaced meanwhile is
// refused. A refusal is an error, after which ask has the decision shown anew.
func (w *walk) choose(ctx context.Context, d *pending.Decision, c *pending.Choice) (step, error) {
	said := pending.Said{}
	switch need := c.Needs(&d.Summary); need.Kind {
	case pending.NeedNothing:
	case pending.NeedAnswers:
		return w.answer(ctx, d)
	case pending.NeedYes:
		sure, err := w.app.Confirm(ctx, w.console, need.Prompt)
		if err != nil || !sure {
			return stay, err
		}
	case pending.NeedText:
		text, err := w.console.Line(ctx, need.Prompt)
		if err != nil {
			return stay, err
		}
		if said, err = need.Parse(strings.TrimSpace(text)); err != nil {
			return stay, err
		}
	}
	said.Plan = d.Plan // what the person sees
	err := target.Once(ctx, w.app, func(t *target.Target) error {
		ruling, err := t.Ask(ctx, c.Event(t.Key(d.ID), said))
		if err != nil {
			return err
		}
		w.goesOn = t.Next()
		return pending.Report(w.app, string(d.ID), c.Done, ruling)
	})
	return next, err
}

// answer asks what the intent asks.
// It stays at the decision while a question is open, also if the person skipped it on purpose.
func (w *walk) answer(ctx context.Context, d *pending.Decision) (step, error) {
	left, err := answer.Ask(ctx, w.app, w.console, d.ID)
	if err != nil || left > 0 {
		return stay, err
	}
	w.app.Say("%s: all questions answered", d.ID)
	return next, nil
}
