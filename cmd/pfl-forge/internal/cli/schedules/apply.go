package schedules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/create"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/schedules"
)

const applyHelp = `Put the schedules of pfl-forge.yaml in force, as they are on the base branch, or those of --file.
They take the place of all that are in force: one that is not in the file ends. One that has not changed stays as it
is, paused or not. You become the requester of the intents of those that are new or have changed.

With --server, give the file: --file pfl-forge.yaml.`

// fileFlag adds the flag for the file to read in place of that on the base branch.
func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "file", "f", "", "the `file` to read, - for standard input; default: pfl-forge.yaml on the base branch")
}

// configOf returns the configuration of a file, or that on the base branch. In a repository
// the committed one counts, as for everything else that the file says; an organisation's
// server has no file that this program could read, so there one has to be named. A file is
// parsed as a whole configuration, so a mistake anywhere in it is an error.
func configOf(ctx context.Context, a *kit.App, t *target.Target, file string) (*config.Project, error) {
	if file == "" {
		if t.Repo == nil || t.Remote {
			return nil, kit.Usage(errors.New("which schedules? with --server there is no base branch to read: --file " + config.FileName))
		}
		base, err := t.Repo.Base(ctx)
		if err != nil {
			return nil, err
		}
		return base.Config, nil
	}
	in := a.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	const most = 1 << 20 // Parse has the real limit, and names it
	data, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return nil, err
	}
	return config.Parse(data)
}

// change says how a schedule changes when a file is applied.
// Programs get one for each schedule, also for those that are kept.
type change struct {
	Name   string `json:"name"   yaml:"name"`
	Change string `json:"change" yaml:"change"` // added, changed, ended or kept
}

// compare returns the changes of a file: of its schedules in their order, then of those that
// end. It compares digests, since a list does not have the texts of intents. differs says that
// applying the file does anything at all: another order does, as lists have that of the file.
func compare(inForce []forge.ScheduleSummary, file []forge.Schedule) (list []change, differs bool) {
	list = []change{} // programs get a list, also an empty one
	before := map[string]string{}
	for i := range inForce {
		before[inForce[i].Name] = inForce[i].Digest
	}
	for i := range file {
		what := "kept"
		if digest, there := before[file[i].Name]; !there {
			what = "added"
		} else if digest != schedules.Digest(&file[i]) {
			what = "changed"
		}
		delete(before, file[i].Name)
		list = append(list, change{file[i].Name, what})
		differs = differs || what != "kept" || i >= len(inForce) || inForce[i].Name != file[i].Name // their order is told as well
	}
	for i := range inForce {
		if _, ends := before[inForce[i].Name]; ends {
			list, differs = append(list, change{inForce[i].Name, "ended"}), true
		}
	}
	return list, differs
}

// wished returns the schedules of a file, as they are sent.
// Their order is that of the file, which lists keep.
func wished(cfg *config.Project) (list []forge.Schedule) {
	for i := range cfg.Schedules {
		list = append(list, cfg.Schedules[i].Schedule())
	}
	return list
}

// Notice says so when the schedules of a configuration are not those in force:
// with the commit that changes them nothing happens yet. A project that has
// none is not looked at, and what cannot be read is told by whatever comes
// next. It is called by run, and prints one line to standard error at most.
func Notice(ctx context.Context, a *kit.App, cfg *config.Project) {
	if len(cfg.Schedules) == 0 {
		return
	}
	t, err := target.Reader(ctx, a)
	if err != nil {
		return
	}
	defer t.Close()
	inForce, err := read(ctx, t)
	if err != nil {
		return
	}
	if _, differs := compare(inForce, wished(cfg)); differs {
		a.Say("the schedules of %s are not in force as they are there; see what would change: pfl-forge schedules apply --dry-run", config.FileName)
	}
}

// applyCommand returns the command that puts schedules in force. It can be run again
// and again, by a job after each merge for example: where nothing differs it asks
// for nothing. --dry-run compares and prints in the same way, and sends nothing.
func applyCommand(a *kit.App) *cobra.Command {
	var file string
	var dryRun bool
	var format render.Format
	cmd := &cobra.Command{
		Use: "apply", Short: "put the schedules of pfl-forge.yaml in force",
		Long:    applyHelp,
		Example: "  pfl-forge schedules apply --dry-run\n  pfl-forge schedules apply --file pfl-forge.yaml --server nats://forge.example.com",
		Args:    kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return target.Once(cmd.Context(), a, func(t *target.Target) error {
				return apply(cmd.Context(), a, t, file, dryRun, format)
			})
		},
	}
	fileFlag(cmd, &file)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	kit.OutputFlag(cmd, &format)
	return cmd
}

// apply puts the schedules of a file in force, and prints what that changes.
// Between the look at those in force and the wish another person may have
// applied others; the last one wins, and the audit has both.
//
// It prints the changes also of a dry run, and those that were stored and not decided on yet; only
// a refusal ends it with an error. With -o name it prints the names of all schedules of both lists.
func apply(ctx context.Context, a *kit.App, t *target.Target, file string, dryRun bool, format render.Format) error {
	cfg, err := configOf(ctx, a, t, file)
	if err != nil {
		return err
	}
	m := &forge.SetSchedules{Schedules: wished(cfg)}
	inForce, err := read(ctx, t)
	if err != nil {
		return err
	}
	list, differs := compare(inForce, m.Schedules)
	if differs && !dryRun {
		ruling, err := t.Ask(ctx, forge.Event{To: t.Key("").ProjectKey(), Message: m})
		switch {
		case err != nil:
			return err
		case ruling.Decision == forge.Refused:
			return fmt.Errorf("the schedules stay as they are: %s", ruling.Reason)
		case ruling.Decision == "":
			a.Say("accepted; %s", ruling.Reason)
		}
	}
	return a.Print(format, list, kit.Names(list, func(c *change) string { return c.Name }), func() error {
		if len(list) == 0 {
			a.Say("%s has no schedules, and none is in force", config.FileName)
			return nil
		}
		columns := render.Columns{Header: []string{"NAME", "CHANGE"}}
		for _, c := range list {
			columns.Add(c.Name, c.Change)
		}
		return a.Table(&columns)
	})
}

// runCommand returns the command that submits the intent of a schedule now. It does
// not go through the schedule: what a person wants now is not left out because last
// night's is still open, and the schedule is due as before. The schedule need not
// be in force. A name that the file does not have is a mistake in the command line.
func runCommand(a *kit.App) *cobra.Command {
	var file string
	var format render.Format
	cmd := &cobra.Command{
		Use: "run <name>", Short: "submit the intent of a schedule now",
		Long: "Submit the intent of a schedule now, as pfl-forge.yaml on the base branch or --file has it: to try it, or not to wait.\n" +
			"You are its requester. The next time of the schedule stays as it is.",
		Example: "  pfl-forge schedules run nightly && pfl-forge run",
		Args:    kit.Between(1, 1, "the name"), ValidArgsFunction: names(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return target.Once(cmd.Context(), a, func(t *target.Target) error {
				cfg, err := configOf(cmd.Context(), a, t, file)
				if err != nil {
					return err
				}
				for i := range cfg.Schedules {
					if cfg.Schedules[i].Name == args[0] {
						return submit(cmd.Context(), a, t, cfg.Schedules[i].Schedule().Intent, format)
					}
				}
				hint := config.FileName + " has no schedules"
				if known := cfg.ScheduleNames(); len(known) > 0 {
					hint = "there are " + strings.Join(known, ", ")
				}
				return kit.Usage(fmt.Errorf("there is no schedule %q; %s", kit.Safe(args[0]), hint))
			})
		},
	}
	fileFlag(cmd, &file)
	kit.OutputFlag(cmd, &format)
	return cmd
}

// submit submits an intent of a schedule as one of the person: with an id of its title
// that is free, and their name as its origin, as pfl-forge create does. The fields of
// create.New that say whose it is are kept, and all others are the schedule's.
func submit(ctx context.Context, a *kit.App, t *target.Target, in forge.Intent, format render.Format) error {
	i := create.New(in.Title, in.Body)
	origin, source, status, at := i.Origin, i.Source, i.Status, i.CreatedAt
	*i = in
	i.Origin, i.Source, i.Status, i.CreatedAt = origin, source, status, at
	if err := create.Prepare(ctx, t, i); err != nil {
		return err
	}
	return create.Submit(ctx, a, t, i, format)
}
