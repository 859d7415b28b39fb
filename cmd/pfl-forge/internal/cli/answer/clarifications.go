package answer

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// asked is a question that is open, as programs read it. The fields of the
// question come first and on the same level, so that a program that reads the
// output of `pfl-forge answer <id> -o json` reads these as well.
type asked struct {
	document.Question `yaml:",inline"`

	Intent forge.IntentID `json:"intent" yaml:"intent"`
	Title  string         `json:"title"  yaml:"title"`

	// Command is how to answer it, as it is typed in a shell.
	Command string `json:"command" yaml:"command"`
}

// ClarificationsCommand returns the command clarifications.
// It never asks, on a terminal either: it is the list, and `pfl-forge answer` is the dialogue.
func ClarificationsCommand(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:     "clarifications",
		Aliases: []string{"questions"},
		Short:   "list all open questions",
		Long: "List the open questions of all intents, with background and suggested answers.\n" +
			"On a terminal, `pfl-forge answer` asks them one at a time.",
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return clarifications(cmd.Context(), a, format) },
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

// clarifications prints every open question, those of an intent below its
// title. With -o name a line has the id and the number of a question, separated
// by a tab, as `pfl-forge answer` takes them.
func clarifications(ctx context.Context, a *kit.App, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	list, err := listOpen(ctx, t)
	if err != nil {
		return err
	}
	names := kit.Names(list, func(q *asked) string { return fmt.Sprintf("%s\t%d", q.Intent, q.Number) })
	return a.Print(format, list, names, func() error {
		if len(list) == 0 {
			a.Say("no open questions")
		}
		for i := range list {
			q := &list[i]
			if i == 0 || list[i-1].Intent != q.Intent {
				fmt.Fprintf(a.Out, "%s  %s\n", a.Style(a.Out).Bold(string(q.Intent)), kit.Safe(q.Title))
			}
			document.PrintQuestion(a, &q.Question, "  ")
			fmt.Fprintf(a.Out, "     > %s\n", q.Command)
		}
		return nil
	})
}

// listOpen returns the open questions of all intents that wait for answers.
// They are sorted by intent and then by number. The list is never nil, because
// a program that reads JSON gets [] and not null. Answered questions are left
// out, and so are the questions of intents that wait for something else.
func listOpen(ctx context.Context, t *target.Target) ([]asked, error) {
	all, err := t.Summaries(ctx)
	if err != nil {
		return nil, err
	}
	list := []asked{}
	for i := range all {
		if all[i].Waiting != forge.WaitingClarification {
			continue
		}
		v, err := t.View(ctx, all[i].Key.Intent)
		if err != nil {
			return nil, err
		}
		for _, q := range document.Questions(&v.Intent) {
			if q.Answer == nil {
				command := fmt.Sprintf("pfl-forge answer %s %d '...'", v.Intent.ID, q.Number)
				list = append(list, asked{q, v.Intent.ID, v.Intent.Title, command})
			}
		}
	}
	return list, nil
}
