package backups

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/backup"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/connect"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/natsd"
)

const restoreHelp = `Put a backup into a server that has no streams of pfl-forge, while no service works on it. Every
file is compared with what was copied before anything is changed, and every journal is read after.
A restore that was cut off is called again; where that says that the server is not empty, take away
what it left, and begin anew.

In a repository it is the repository's own server: move .forge/nats away first. What the base branch
has of tasks that the backup shows unfinished was merged after the backup. Their intents are paused,
so that nothing is made twice: cancel them, or resume them to have the rest made.

With --server it is the organisation's: stop its services, and start them when it is done. Call it in
a clone with --project to have the same found and printed: start the runner alone then, which hears
you, and cancel or pause those before you start the workers.`

// restored is the document that restore prints for programs.
type restored struct {
	backup.Restored `yaml:",inline"`

	// Ahead are the intents of which the base branch has more than the backup.
	Ahead []ahead `json:"ahead" yaml:"ahead"`
}

// RestoreCommand returns the command restore. Only the bounds of --replicas are
// checked here: how many copies a cluster can keep its server says.
func RestoreCommand(a *kit.App) *cobra.Command {
	var (
		format   render.Format
		replicas int
	)
	cmd := &cobra.Command{
		Use:   "restore <folder>",
		Short: "put a backup into an empty server",
		Long:  restoreHelp,
		Example: "  mv .forge/nats .forge/nats.broken && pfl-forge restore ../backup-2026-11-25\n" +
			"  pfl-forge restore --server nats://127.0.0.1:4222 --replicas 3 /var/backups/pfl-forge/monday",
		Args: kit.Between(1, 1, "the folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if replicas < 0 || replicas > 5 {
				return kit.Usage(errors.New("--replicas: between 1 and 5; 0: as many as there were"))
			}
			return restore(cmd.Context(), a, args[0], replicas, format)
		},
	}
	cmd.Flags().IntVar(&replicas, "replicas", 0, "`number` of servers that keep each stream; 0: as many as before, in a repository 1")
	_ = cmd.RegisterFlagCompletionFunc("replicas", cobra.NoFileCompletions)
	kit.OutputFlag(cmd, &format)
	return cmd
}

// restore puts a backup back, and looks what git has beside it.
//
// The comparison with git needs a repository and a project, so with --server and
// without --project it is left out. The exit code is kit.ExitError if a chain breaks
// in what was restored: everything is in place then, and a person has to look.
func restore(ctx context.Context, a *kit.App, dir string, replicas int, format render.Format) error {
	got, err := put(ctx, a, dir, replicas)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	doc := restored{Restored: *got, Ahead: []ahead{}}
	if !a.Remote() || a.Project != "" {
		if doc.Ahead, err = compared(ctx, a); err != nil {
			return fmt.Errorf("everything is restored, but what git has cannot be compared: %w", err)
		}
	}
	if err := a.Print(format, doc, nil, func() error { return printRestored(a, &doc) }); err != nil {
		return err
	}
	for i := range doc.Findings {
		if doc.Findings[i].Breaks() { // what is no record has no effect, and was there before
			return kit.ExitError
		}
	}
	return nil
}

// put restores a backup.
//
// The backup is looked at before a server is started, so that a wrong path leaves
// nothing behind. A repository's server keeps one copy of each stream, whatever the
// backup came from, and must not be held by a run. Errors say what to do first.
func put(ctx context.Context, a *kit.App, dir string, replicas int) (*backup.Restored, error) {
	o := backup.Options{Replicas: replicas, Done: func(s backup.Stream) { a.Say("%s", line(&s)) }}
	if a.Remote() {
		b, err := connect.Administrator(ctx, a)
		if err != nil {
			return nil, err
		}
		defer b.Close()
		return b.Backups.Restore(ctx, dir, o)
	}
	if _, err := backup.Open(dir); err != nil {
		return nil, err // before a server is started for it
	}
	repo, err := local.OpenRepository(ctx, a.Dir)
	if err != nil {
		return nil, err
	}
	s, err := local.OpenEmpty(ctx, repo, a.Log())
	if held, ok := errors.AsType[*natsd.HeldError](err); ok {
		repo.Close()
		return nil, fmt.Errorf("%w: end that first", held)
	}
	if err != nil {
		repo.Close()
		return nil, err
	}
	defer s.Close(ctx)
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	got, err := s.Bus.Backups.Restore(ctx, dir, o)
	if errors.Is(err, backup.ErrNotEmpty) {
		return nil, fmt.Errorf("%w: here that is .forge/nats; move it away first, also what a restore left that was cut off", err)
	}
	return got, err
}

// printRestored tells a person how much there is, what was left out, and
// which intents need a decision.
func printRestored(a *kit.App, doc *restored) error {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(a.Out, format, args...) }
	p("%s with %s\n", render.Count(doc.Journals, "journal"), render.Count(doc.Records, "record"))
	if doc.LeftOut > 0 {
		p("%s of projects left out: they were decided on the word of intents after these were copied, and are decided again\n", render.Count(doc.LeftOut, "record"))
	}
	for i := range doc.Findings {
		f := &doc.Findings[i]
		p("%s of %s: %s\n", f.Kind, kit.Safe(f.Journal), kit.Safe(f.Detail))
	}
	for i := range doc.Ahead {
		p("%s\n", kit.Safe(doc.Ahead[i].words()))
	}
	return nil
}

// compared finds the intents of which git has more than the backup, and
// pauses them in a repository.
//
// An organisation's intents are not paused from here: this account copies streams, and the
// runner, which would hear a pause, is not up yet. They are printed for the administrator.
func compared(ctx context.Context, a *kit.App) ([]ahead, error) {
	if !a.Remote() {
		// The files may show what came after the backup: they are set aside.
		t, _, err := target.Rescuer(ctx, a, true)
		if err != nil {
			return nil, err
		}
		defer t.Close()
		found, _, err := t.Repo.Compare(ctx, t.Bus, t.Project)
		if err != nil {
			return nil, err
		}
		list := all(found)
		return list, pauseAhead(ctx, t, list)
	}
	project, err := forge.ParseProjectID(a.Project)
	if err != nil {
		return nil, kit.Usage(fmt.Errorf("--project: %w", err))
	}
	repo, err := local.OpenRepository(ctx, a.Dir)
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	b, err := connect.Administrator(ctx, a)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	found, _, err := repo.Compare(ctx, b, project)
	return all(found), err
}

// pauseAhead has the intents wait for a person.
// Those that the backup does not know at all are left out: there is no intent to pause.
func pauseAhead(ctx context.Context, t *target.Target, list []ahead) (err error) {
	for i := range list {
		x := &list[i]
		if x.Unknown {
			continue
		}
		reason := fmt.Sprintf("the base branch has %s, which the restored backup does not know; cancel it, or resume it to have it made again", x.Merged)
		if x.Paused, err = pause(ctx, t, x.Intent, reason); err != nil {
			return err
		}
	}
	return nil
}

// pause has an intent wait for a person, and reports whether it does: one that has ended does not.
func pause(ctx context.Context, t *target.Target, id forge.IntentID, reason string) (bool, error) {
	r, err := t.Ask(ctx, forge.Event{To: t.Key(id), Message: &forge.Pause{Reason: reason}})
	return r.Decision == forge.Applied, err
}

// ahead is an intent of which the base branch has more than the backup.
type ahead struct {
	local.Ahead `yaml:",inline"`

	// Paused says that the intent waits for a person because of that.
	Paused bool `json:"paused" yaml:"paused"`
}

// all returns the intents, none of which is paused yet.
func all(found []local.Ahead) []ahead {
	list := make([]ahead, len(found))
	for i := range found {
		list[i].Ahead = found[i]
	}
	return list
}

// words describes the finding for a person, with the commands to run; in an
// organisation these have to be run before the workers start.
func (x *ahead) words() string {
	switch {
	case x.Unknown:
		return fmt.Sprintf("%s was asked for after the backup; the base branch has %s, which stays", x.Intent, x.Merged)
	case x.Paused:
		return fmt.Sprintf("%s is paused: the base branch has %s, which the restored backup does not know: pfl-forge cancel %s, or pfl-forge resume %s to "+
			"have it made again", x.Intent, x.Merged, x.Intent, x.Intent)
	}
	return fmt.Sprintf("%s: the base branch has %s, which the backup does not know: start the runner, and before any worker "+
		"pfl-forge cancel %s, or pfl-forge pause %s", x.Intent, x.Merged, x.Intent, x.Intent)
}
