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
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// askAll asks a person everything that some intents ask, one question at a time.
func (a *app) askAll(ctx context.Context, c *console.Console, ids []forge.IntentID) error {
	skipped := 0
	for _, id := range ids {
		left, err := a.askQuestions(ctx, c, id)
		skipped += left
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return asInterrupt(err)
		}
	}
	if skipped > 0 {
		a.say("%s left open", render.Count(skipped, "question"))
		return nil
	}
	return a.once(ctx, func(t *target) error {
		a.say("%s", t.next())
		return nil
	})
}

// askQuestions asks a person what an intent asks, one question at a time. It returns how
// many they left open. io.EOF: they want no more questions.
func (a *app) askQuestions(ctx context.Context, c *console.Console, id forge.IntentID) (int, error) {
	seen := map[string]bool{}
	left := 0
	for {
		q, title, err := a.openQuestion(ctx, id, seen)
		if err != nil || q == nil {
			return left, err
		}
		seen[q.Question] = true
		a.showQuestion(id, title, q)
		text, err := c.Line(ctx, "> ")
		if err != nil {
			return left + 1, err
		}
		if text = chosen(q, text); text == "" {
			left++
			continue
		}
		if err := a.giveAnswer(ctx, id, q, text); err != nil {
			a.say("%s", a.style(a.err).Bad(safe(err.Error())))
			left++
		}
	}
}

// openQuestion returns the first question of an intent that is open and was not seen,
// as things are now; nil if there is none.
func (a *app) openQuestion(ctx context.Context, id forge.IntentID, seen map[string]bool) (*question, string, error) {
	t, err := a.reader(ctx)
	if err != nil {
		return nil, "", err
	}
	defer t.close()
	v, err := t.view(ctx, id)
	if err != nil {
		return nil, "", err
	}
	if v.Summary.Waiting != forge.WaitingClarification {
		return nil, "", nil
	}
	list := questions(&v.Intent)
	i := slices.IndexFunc(list, func(q question) bool { return q.Answer == nil && !seen[q.Question] })
	if i < 0 {
		return nil, "", nil
	}
	return &list[i], v.Intent.Title, nil
}

func (a *app) showQuestion(id forge.IntentID, title string, q *question) {
	style := a.style(a.out)
	fmt.Fprintf(a.out, "\n%s  %s\n%s\n", style.Bold(string(id)), safe(title), indent(style.Attention(safe(q.Question)), "  "))
	if q.Context != "" {
		fmt.Fprintln(a.out, indent(safe(q.Context), "    "))
	}
	for i, s := range q.Suggested {
		fmt.Fprintf(a.out, "  %d. %s\n", i+1, term.Line(s))
	}
	how := "type an answer"
	if len(q.Suggested) > 0 {
		how = "type a number or an answer of your own"
	}
	fmt.Fprintln(a.out, style.Faint("  "+how+"; nothing leaves it open, Ctrl-D ends"))
}

// chosen returns the answer that was typed; a number stands for what was suggested.
func chosen(q *question, text string) string {
	text = strings.TrimSpace(text)
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Suggested) && !slices.Contains(q.Suggested, text) {
		return q.Suggested[n-1]
	}
	return text
}

func (a *app) giveAnswer(ctx context.Context, id forge.IntentID, q *question, text string) error {
	return a.once(ctx, func(t *target) error {
		ruling, err := t.ask(ctx, forge.Event{To: t.key(id), Message: &forge.Answer{
			Index: q.Number - 1, Question: q.Question, Answer: text,
		}})
		if err != nil {
			return err
		}
		return a.report(id, fmt.Sprintf("question %d answered: %s", q.Number, term.Line(text)), ruling)
	})
}
