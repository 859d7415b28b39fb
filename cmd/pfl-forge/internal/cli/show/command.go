package show

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goalview"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/logs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

func Command(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:               "show <id>",
		Short:             "show everything about an intent or a task",
		Example:           "  pfl-forge show reset-link\n  pfl-forge show reset-link-001",
		Args:              kit.Between(1, 1, "the id of an intent or a task"),
		ValidArgsFunction: target.Intents(a, target.AnyIntent, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return Show(cmd.Context(), a, args[0], format) },
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

func Show(ctx context.Context, a *kit.App, arg string, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	v, task, err := t.Find(ctx, arg)
	if err != nil {
		return err
	}
	if task != nil {
		return showTask(ctx, a, t, v, task, format)
	}
	d := detailOf(v)
	if v.Goal != nil {
		if d.Loop, err = goalview.Read(ctx, t, v); err != nil {
			return err
		}
	}
	if format.Data() {
		return format.Write(a.Out, d)
	}
	if err := printDetail(a, &d); err != nil {
		return err
	}
	if err := logs.Timeline(ctx, a, t, v.Intent.ID); err != nil {
		return err
	}
	if len(d.Commands) > 0 {
		a.Heading("what you can do")
		for _, c := range d.Commands {
			fmt.Fprintf(a.Out, "  > %s\n", c)
		}
	}
	return nil
}
