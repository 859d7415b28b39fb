// Package settings is the command settings: it says by which settings a project
// is worked on, and where each comes from.
//
// A runner answers with the settings that a worker read last and reported in a
// result (ADR 0116), so the command shows the settings that were in force, not what
// a file says now. Command lines are cut before a word that may hold a secret.
package settings

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/run"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

const help = `Show the project's settings, as its workers read them last, and where each comes from: the
default, the repository's pfl-forge.yaml, or the operator who runs the services.

A command line is shown up to the first word that may hold a secret.`

// Command returns the command settings. With --changed, settings with their default value are left
// out of every format.
func Command(a *kit.App) *cobra.Command {
	var changed bool
	var format render.Format
	cmd := &cobra.Command{
		Use:     "settings",
		Short:   "show the project's settings, and where each comes from",
		Long:    help,
		Example: "  pfl-forge settings\n  pfl-forge settings --changed\n  pfl-forge settings -o json",
		Args:    kit.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return show(cmd.Context(), a, changed, format) },
	}
	cmd.Flags().BoolVar(&changed, "changed", false, "only those that are not the defaults")
	kit.OutputFlag(cmd, &format)
	return cmd
}

// show prints a row for each setting. The targets of notifications are those of this
// user, and are left out for an organisation: they are in the files of its runners.
func show(ctx context.Context, a *kit.App, changed bool, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	s, err := inForce(ctx, a, t)
	if err != nil {
		return err
	}
	if changed {
		s.Settings = slices.DeleteFunc(s.Settings, func(one setup.Setting) bool { return one.From == "default" })
	}
	names := kit.Names(s.Settings, func(one *setup.Setting) string { return one.Name })
	return a.Print(format, s, names, func() error { return table(a, &s) })
}

// inForce returns the settings that the project was worked on with last. By HTTP a runner tells
// them; otherwise the journal is read here. Before the first analysis, and where nothing was ever
// submitted, they are the defaults, with no commit at which a file was read.
func inForce(ctx context.Context, a *kit.App, t *target.Target) (setup.InForce, error) {
	if t.ByHTTP() {
		return t.Settings(ctx)
	}
	// An organisation's notifications are in the files of its runners, which this command does not
	// see.
	var told *notify.Config
	if !t.Remote {
		var err error
		if told, err = run.Notifications(a); err != nil {
			return setup.InForce{}, err
		}
	}
	var j *journal.Journal
	if t.Bus != nil {
		j = t.Bus.Journal
	}
	return runner.Settings(ctx, j, t.Project, told, 0)
}

// table prints the settings as a table, and says where the file was read. A value of several
// lines, such as a list of commands, is put on one line with commas; -o json has it as it is.
func table(a *kit.App, s *setup.InForce) error {
	columns := render.Columns{Header: []string{"SETTING", "VALUE", "FROM"}, Shrink: 1}
	for _, one := range s.Settings {
		columns.Add(one.Name, strings.ReplaceAll(one.Value, "\n", ", "), one.From)
	}
	if err := a.Table(&columns); err != nil {
		return err
	}
	if r := s.Read; r != nil {
		a.Say("pfl-forge.yaml was read at commit %s for %s", r.Commit[:min(len(r.Commit), 12)], r.Intent)
	} else {
		a.Say("no analysis has read pfl-forge.yaml lately: these are the defaults")
	}
	for _, n := range s.Notifications {
		a.Say("notification %s: by %s, of intents that are %s", n.Name, n.By, strings.Join(n.On, ", "))
	}
	return nil
}
