// Package answer is the commands about the questions of intents: answer sends an answer, or
// asks a person at a terminal one question after the other, and clarifications lists what
// is open. Ask is open to the inbox and the live view, which ask the same way.
//
// Questions, and the word on each answer, are printed to standard output, hints to standard
// error. An answer is an event like every other decision of a person: package pending makes it,
// package target sends it, and the rules of the runner accept or refuse it. That the question
// is still open is decided there, and is checked here only to find the question that was meant.
//
// Beside the tests here, of the pure parts, the commands are tested by
// waiting.txtar and interactive.txtar in cmd/pfl-forge/testdata/script.
package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Command returns the command answer. It is a dialogue if there is a person at a terminal, the
// answer is not given and -o is not either. In all other cases it needs the id, and lists or sends.
func Command(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:   "answer [<id>] [<number>] [<answer>]",
		Short: "answer the questions of intents, or list them",
		Long: "Answer a question of an intent. The number can be omitted when only one question is open.\n" +
			"Without an answer, a terminal asks the open questions one at a time (of all intents if no id is given);\n" +
			"elsewhere the intent's questions are listed.",
		Example: "  pfl-forge answer\n  pfl-forge answer rename-user\n" +
			"  pfl-forge answer rename-user Account\n  pfl-forge answer rename-user 2 \"not the tests\"",
		Args:              kit.Between(0, 3, ""),
		ValidArgsFunction: complete.Intents(a, pending.Answer.Fits, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 && !cmd.Flags().Changed("output") {
				if c, ok := a.Terminal(); ok {
					defer c.Close()
					return answerAt(cmd.Context(), a, c, args)
				}
			}
			if len(args) == 0 {
				return kit.Usage(errors.New("the id of an intent is missing; pfl-forge clarifications lists the open questions"))
			}
			id, err := forge.ParseIntentID(args[0])
			if err != nil {
				return kit.Usage(err)
			}
			if len(args) == 1 {
				return questions(cmd.Context(), a, id, format)
			}
			return answer(cmd.Context(), a, id, args[1:])
		},
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

// answerAt asks a person at a terminal what the intent asks that an argument names, or what
// all do.
//
// An intent that asks nothing is not an error: its questions are listed with their answers,
// so that a person sees what was said. An id that does not exist is found out by that, too.
func answerAt(ctx context.Context, a *kit.App, c *console.Console, args []string) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	list, err := listOpen(ctx, t)
	t.Close()
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
		return askAll(ctx, a, c, ids)
	case len(args) == 0:
		a.Say("no open questions")
		return nil
	}
	id, err := forge.ParseIntentID(args[0])
	if err != nil {
		return kit.Usage(err)
	}
	return questions(ctx, a, id, render.Table)
}

// questions prints every question of an intent, with its answer if it has one.
// They are numbered as answer takes them. The command clarifications prints those of all intents.
// A question has no name of its own, so -o name prints the same text as a terminal gets.
func questions(ctx context.Context, a *kit.App, id forge.IntentID, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	v, err := t.View(ctx, id)
	if err != nil {
		return err
	}
	list := document.Questions(&v.Intent)
	switch {
	case format.Data():
		return format.Write(a.Out, list)
	case len(list) == 0:
		a.Say("%s has no open questions", id)
	}
	for _, q := range list {
		document.PrintQuestion(a, &q, "")
	}
	if v.Intent.NeedsClarification() {
		a.Say("next: pfl-forge answer %s <number> <answer>", id)
	}
	return nil
}

// answer sends the answer that the arguments give to a question of an intent.
//
// It opens a Decider and not a Reader: in a repository the answer is then
// decided on in this process, and the command ends with the ruling. args are
// the number and the answer, or the answer alone.
func answer(ctx context.Context, a *kit.App, id forge.IntentID, args []string) error {
	t, err := target.Decider(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	v, err := t.View(ctx, id)
	if err != nil {
		return err
	}
	index, text, err := chooseQuestion(&v.Intent, args)
	if err != nil {
		return err
	}
	q := &document.Questions(&v.Intent)[index]
	ruling, err := t.Ask(ctx, pending.Answer.Event(t.Key(id), pending.Said{Question: q, Text: text}))
	if err != nil {
		return err
	}
	if err := pending.Report(a, string(id), fmt.Sprintf("question %d answered", q.Number), ruling); err != nil {
		return err
	}
	if left := countOpen(&v.Intent, index); left > 0 {
		a.Say("%s left: pfl-forge answer %s", render.Count(left, "question"), id)
		return nil
	}
	a.Say("%s", t.Next())
	return nil
}

// chooseQuestion returns the index of the question that the arguments are about, and the
// answer to it. Without a number exactly one question must be open.
//
// The index counts from 0, the number in args from 1. A question that was
// answered before can be named by its number; whether a second answer counts is
// decided by the rules. Errors name what to type instead.
func chooseQuestion(i *forge.Intent, args []string) (int, string, error) {
	if len(args) == 2 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 {
			return 0, "", kit.Usage(fmt.Errorf("%q is not the number of a question; quote an answer of several words", args[0]))
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
			return 0, "", fmt.Errorf("several questions are open: give the number; `pfl-forge answer %s` lists them", i.ID)
		default:
			open = n
		}
	}
	if open < 0 {
		return 0, "", errors.New(string(i.ID) + ": no open questions")
	}
	return open, args[0], nil
}

// countOpen returns how many questions are open when the one with an index is answered.
// The last one lets the step go on that asked, which is worth a word to the person.
func countOpen(i *forge.Intent, answered int) int {
	n := 0
	for k, c := range i.Clarifications {
		if c.Answer == nil && k != answered {
			n++
		}
	}
	return n
}
