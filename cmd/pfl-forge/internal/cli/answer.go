package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// question is a clarification, as programs read it.
type question struct {
	Number    int      `json:"number"              yaml:"number"` // counted from 1
	Question  string   `json:"question"            yaml:"question"`
	Context   string   `json:"context,omitempty"   yaml:"context,omitempty"`
	Suggested []string `json:"suggested,omitempty" yaml:"suggested,omitempty"`
	Answer    *string  `json:"answer"              yaml:"answer"`
}

func questions(i *forge.Intent) []question {
	list := make([]question, len(i.Clarifications))
	for n, c := range i.Clarifications {
		list[n] = question{n + 1, c.Question, c.Context, c.SuggestedAnswers, c.Answer}
	}
	return list
}

func (a *app) answerCommand() *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:   "answer [<id>] [<number>] [<answer>]",
		Short: "answer the questions of intents, or list them",
		Long: "Answer a question of an intent. The number may be left out when only one question is open.\n" +
			"Without an answer a terminal asks the open questions one at a time, those of all intents if there is no id;\n" +
			"elsewhere the questions of the intent are listed.",
		Example: "  pfl-forge answer\n  pfl-forge answer rename-user\n" +
			"  pfl-forge answer rename-user Account\n  pfl-forge answer rename-user 2 \"not the tests\"",
		Args:              between(0, 3, ""),
		ValidArgsFunction: a.complete(waitsFor(forge.WaitingClarification), 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 && !cmd.Flags().Changed("output") {
				if c, ok := a.terminal(); ok {
					defer c.Close()
					return a.answerAt(cmd.Context(), c, args)
				}
			}
			if len(args) == 0 {
				return usageError{missing("the id of an intent")}
			}
			id, err := forge.ParseIntentID(args[0])
			if err != nil {
				return usageError{err}
			}
			if len(args) == 1 {
				return a.questions(cmd.Context(), id, format)
			}
			return a.answer(cmd.Context(), id, args[1:])
		},
	}
	output(cmd, &format)
	return cmd
}

// answerAt asks a person at a terminal: what one intent asks, or what all do.
func (a *app) answerAt(ctx context.Context, c *console.Console, args []string) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	list, err := t.asked(ctx)
	t.close()
	if err != nil {
		return err
	}
	var ids []forge.IntentID
	for i := range list {
		if id := list[i].Intent; (len(args) == 0 || string(id) == args[0]) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	switch {
	case len(ids) > 0:
		return a.askAll(ctx, c, ids)
	case len(args) == 0:
		a.say("no question is open")
		return nil
	}
	id, err := forge.ParseIntentID(args[0])
	if err != nil {
		return usageError{err}
	}
	return a.questions(ctx, id, render.Table)
}

func (a *app) questions(ctx context.Context, id forge.IntentID, format render.Format) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	v, err := t.view(ctx, id)
	if err != nil {
		return err
	}
	list := questions(&v.Intent)
	switch {
	case format.Data():
		return format.Write(a.out, list)
	case len(list) == 0:
		a.say("%s asks nothing", id)
	}
	for _, q := range list {
		a.printQuestion(&q, "")
	}
	if v.Intent.NeedsClarification() {
		a.say("next: pfl-forge answer %s <number> <answer>", id)
	}
	return nil
}

func (a *app) printQuestion(q *question, by string) {
	fmt.Fprintf(a.out, "%s%d. %s\n", by, q.Number, safe(q.Question))
	if q.Context != "" {
		fmt.Fprintln(a.out, indent(safe(q.Context), by+"   "))
	}
	switch {
	case q.Answer != nil:
		fmt.Fprintf(a.out, "%s   answer: %s\n", by, safe(*q.Answer))
	case len(q.Suggested) > 0:
		fmt.Fprintf(a.out, "%s   for example: %s\n", by, safe(strings.Join(q.Suggested, ", ")))
	}
}

func (a *app) answer(ctx context.Context, id forge.IntentID, args []string) error {
	t, err := a.decider(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	v, err := t.view(ctx, id)
	if err != nil {
		return err
	}
	index, text, err := chooseQuestion(&v.Intent, args)
	if err != nil {
		return err
	}
	ruling, err := t.ask(ctx, forge.Event{To: t.key(id), Message: &forge.Answer{
		Index: index, Question: v.Intent.Clarifications[index].Question, Answer: text,
	}})
	if err != nil {
		return err
	}
	if err := a.report(id, fmt.Sprintf("question %d answered", index+1), ruling); err != nil {
		return err
	}
	if left := openQuestions(&v.Intent, index); left > 0 {
		a.say("%s left: pfl-forge answer %s", render.Count(left, "question"), id)
		return nil
	}
	a.say("%s", t.next())
	return nil
}

// chooseQuestion returns the index of the question that is meant, and the answer.
func chooseQuestion(i *forge.Intent, args []string) (int, string, error) {
	if len(args) == 2 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 {
			return 0, "", usageError{fmt.Errorf("%q is no number of a question; quote an answer of several words", args[0])}
		}
		if n > len(i.Clarifications) {
			return 0, "", fmt.Errorf("question %d does not exist; `pfl-forge answer %s` lists the questions", n, i.ID)
		}
		return n - 1, args[1], nil
	}
	open := -1
	for n, c := range i.Clarifications {
		switch {
		case c.Answer != nil:
		case open >= 0:
			return 0, "", fmt.Errorf("several questions are open: say which one is answered; `pfl-forge answer %s` lists them", i.ID)
		default:
			open = n
		}
	}
	if open < 0 {
		return 0, "", errors.New(string(i.ID) + ": no question is open")
	}
	return open, args[0], nil
}

// openQuestions counts what is still open when one question is answered.
func openQuestions(i *forge.Intent, answered int) int {
	n := 0
	for k, c := range i.Clarifications {
		if c.Answer == nil && k != answered {
			n++
		}
	}
	return n
}
