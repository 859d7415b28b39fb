package answer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// askAll asks a person everything that some intents ask, one question at a time, and says
// who goes on once nothing is left open.
//
// The ids are gone through in the order in which they come. Ctrl-D at any question ends the command
// without an error, because all that was answered is stored already; Ctrl-C is kit.ExitInterrupted.
func askAll(ctx context.Context, a *kit.App, c *console.Console, ids []forge.IntentID) error {
	skipped := 0
	for _, id := range ids {
		left, err := Ask(ctx, a, c, id)
		skipped += left
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return kit.AsInterrupt(err)
		}
	}
	if skipped > 0 {
		a.Say("%s still open", render.Count(skipped, "question"))
		return nil
	}
	return target.Once(ctx, a, func(t *target.Target) error {
		a.Say("%s", t.Next())
		return nil
	})
}

// Ask asks a person what an intent asks, one question at a time, and sends each answer. It
// returns how many they left open. The error is io.EOF if they want no more questions.
//
// The questions are read anew before each prompt: another person may have answered
// meanwhile, and the runner may have asked more. A question that was skipped is
// not asked again in the same call, and counts as open. An answer that is refused
// is printed, counts as open too, and does not end the call. An error is one of
// reading the intent or of the terminal; the count is true with an error as well.
func Ask(ctx context.Context, a *kit.App, c *console.Console, id forge.IntentID) (int, error) {
	seen := map[string]bool{}
	left := 0
	for {
		q, title, err := openQuestion(ctx, a, id, seen)
		if err != nil || q == nil {
			return left, err
		}
		seen[q.Question] = true
		showQuestion(a, id, title, q)
		text, err := c.Line(ctx, "> ")
		if err != nil {
			return left + 1, err
		}
		if text = chosen(q, text); text == "" {
			left++
			continue
		}
		if err := giveAnswer(ctx, a, id, q, text); err != nil {
			a.Say("%s", a.Style(a.Err).Bad(kit.Safe(err.Error())))
			left++
			continue
		}
		if err := offerSame(ctx, a, c, id, q, text); err != nil {
			return left, err
		}
	}
}

// asking is a question that an intent asks.
type asking struct {
	intent   forge.IntentID
	question document.Question
}

// offerSame offers to give an answer to all other intents that ask the same.
//
// One key accepts for all of them or none. Nothing is printed if no other intent asks
// the same. A refusal of one intent is printed, and the others still get the answer.
func offerSame(ctx context.Context, a *kit.App, c *console.Console, id forge.IntentID, q *document.Question, text string) error {
	others, err := askingTheSame(ctx, a, id, q)
	if err != nil || len(others) == 0 {
		return err
	}
	var ids []string
	for i := range others {
		ids = append(ids, string(others[i].intent))
	}
	sure, err := a.Confirm(ctx, c, fmt.Sprintf("Answer %q to the same question of %s?", term.Short(text, 60), strings.Join(ids, ", ")))
	if err != nil || !sure {
		return err
	}
	for i := range others {
		if err := giveAnswer(ctx, a, others[i].intent, &others[i].question, text); err != nil {
			a.Say("%s", a.Style(a.Err).Bad(kit.Safe(err.Error())))
		}
	}
	return nil
}

// askingTheSame returns the open questions of other intents that are the same in
// text, context and suggestions. Suggestions are compared because a question with the
// same words may offer other choices, and then the same answer could mean something
// else. Each intent that waits for an answer is read whole, in order of the ids.
func askingTheSame(ctx context.Context, a *kit.App, id forge.IntentID, q *document.Question) ([]asking, error) {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	all, err := t.Summaries(ctx)
	if err != nil {
		return nil, err
	}
	var list []asking
	for i := range all {
		other := all[i].Key.Intent
		if other == id || !pending.Answer.Fits(&all[i]) {
			continue
		}
		v, err := t.View(ctx, other)
		if err != nil {
			return nil, err
		}
		for _, o := range document.Questions(&v.Intent) {
			if o.Answer == nil && o.Question == q.Question && o.Context == q.Context && slices.Equal(o.SuggestedAnswers, q.SuggestedAnswers) {
				list = append(list, asking{other, o})
			}
		}
	}
	return list, nil
}

// openQuestion returns the first question of an intent that is open now and was not seen
// yet, and the intent's title. The question is nil if there is none.
//
// Questions are known by their text, which is the key of seen, and not by their
// number: a runner may add questions while the person thinks. The target is
// closed before it returns, so that no run waits for the person.
func openQuestion(ctx context.Context, a *kit.App, id forge.IntentID, seen map[string]bool) (*document.Question, string, error) {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return nil, "", err
	}
	defer t.Close()
	v, err := t.View(ctx, id)
	if err != nil {
		return nil, "", err
	}
	if !pending.Answer.Fits(&v.Summary) {
		return nil, "", nil
	}
	list := document.Questions(&v.Intent)
	i := slices.IndexFunc(list, func(q document.Question) bool { return q.Answer == nil && !seen[q.Question] })
	if i < 0 {
		return nil, "", nil
	}
	return &list[i], v.Intent.Title, nil
}

// showQuestion prints a question of an intent, with what a person can type. Agents write the
// text, the context and the suggestions, so all three are stripped of what steers a terminal.
func showQuestion(a *kit.App, id forge.IntentID, title string, q *document.Question) {
	style := a.Style(a.Out)
	fmt.Fprintf(a.Out, "\n%s  %s\n%s\n", style.Bold(string(id)), kit.Safe(title), kit.Indent(style.Attention(kit.Safe(q.Question)), "  "))
	if q.Context != "" {
		fmt.Fprintln(a.Out, kit.Indent(kit.Safe(q.Context), "    "))
	}
	for i, s := range q.SuggestedAnswers {
		fmt.Fprintf(a.Out, "  %d. %s\n", i+1, term.Line(s))
	}
	how := "Type your answer."
	if len(q.SuggestedAnswers) > 0 {
		how = "Type a number or your own answer."
	}
	fmt.Fprintln(a.Out, style.Faint("  "+how+" Enter skips, Ctrl-D quits."))
}

// chosen returns the answer that was typed; a number stands for what was suggested.
//
// It is empty if nothing but white space was typed. A number out of range, and one that is itself
// among the suggestions ("2" as the answer to "how many?"), is taken as the text of the answer.
func chosen(q *document.Question, text string) string {
	text = strings.TrimSpace(text)
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.SuggestedAnswers) && !slices.Contains(q.SuggestedAnswers, text) {
		return q.SuggestedAnswers[n-1]
	}
	return text
}

// giveAnswer sends the answer to a question, and prints what became of it. It opens the target
// for this one answer. The error is the refusal of the rules, or why nothing could be sent.
func giveAnswer(ctx context.Context, a *kit.App, id forge.IntentID, q *document.Question, text string) error {
	return target.Once(ctx, a, func(t *target.Target) error {
		ruling, err := t.Ask(ctx, pending.Answer.Event(t.Key(id), pending.Said{Question: q, Text: text}))
		if err != nil {
			return err
		}
		return pending.Report(a, string(id), fmt.Sprintf("question %d answered: %s", q.Number, term.Line(text)), ruling)
	})
}
