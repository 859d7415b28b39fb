package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// asked is a question that is open, as programs read it.
type asked struct {
	question `yaml:",inline"`

	Intent  forge.IntentID `json:"intent"  yaml:"intent"`
	Title   string         `json:"title"   yaml:"title"`
	Command string         `json:"command" yaml:"command"` // how to answer it
}

func (a *app) clarificationsCommand() *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:     "clarifications",
		Aliases: []string{"questions"},
		Short:   "list every question that is open",
		Long: "List every question that is open, of all intents, with what you should know for an answer and answers to choose from.\n" +
			"On a terminal `pfl-forge answer` asks them one by one.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.clarifications(cmd.Context(), format) },
	}
	output(cmd, &format)
	return cmd
}

func (a *app) clarifications(ctx context.Context, format render.Format) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	list, err := t.asked(ctx)
	if err != nil {
		return err
	}
	switch {
	case format.Data():
		return format.Write(a.out, list)
	case format == render.Name:
		for i := range list {
			fmt.Fprintf(a.out, "%s\t%d\n", list[i].Intent, list[i].Number)
		}
		return nil
	case len(list) == 0:
		a.say("no question is open")
		return nil
	}
	for i := range list {
		q := &list[i]
		if i == 0 || list[i-1].Intent != q.Intent {
			fmt.Fprintf(a.out, "%s  %s\n", a.style(a.out).Bold(string(q.Intent)), safe(q.Title))
		}
		a.printQuestion(&q.question, "  ")
		fmt.Fprintf(a.out, "     > %s\n", q.Command)
	}
	return nil
}

// asked returns the open questions of all intents that wait for answers.
func (t *target) asked(ctx context.Context) ([]asked, error) {
	all, err := t.summaries(ctx)
	if err != nil {
		return nil, err
	}
	list := []asked{}
	for i := range all {
		if all[i].Waiting != forge.WaitingClarification {
			continue
		}
		v, err := t.view(ctx, all[i].Key.Intent)
		if err != nil {
			return nil, err
		}
		for _, q := range questions(&v.Intent) {
			if q.Answer == nil {
				command := fmt.Sprintf("pfl-forge answer %s %d '...'", v.Intent.ID, q.Number)
				list = append(list, asked{q, v.Intent.ID, v.Intent.Title, command})
			}
		}
	}
	return list, nil
}
