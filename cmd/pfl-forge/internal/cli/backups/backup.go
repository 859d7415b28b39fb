// Package backups is the commands that copy what a server keeps, and put it
// back.
//
// Package bus/backup copies. This package chooses the server, and after a
// restore in a repository finds the commits of the base branch that the
// backup does not know: see compare.
//
// Three commands: backup copies, restore puts a copy into an empty server, and recover
// repairs a store where there is no copy. They print each stream as it is done to
// standard error, and the result to standard output. The reasons for the order of streams
// are in ADR-0073, those for folders of backups in ADR-0139, and those for a store that
// lost something in ADR-0079. The tests are the scripts backup.txtar and recover.txtar in
// cmd/pfl-forge/testdata/script, and TestBackupsByTheirAccount in the package above.
package backups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/backup"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/connect"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

const backupHelp = `Copy everything that the server keeps into a new folder: requests, journals, changes, transcripts
and stored files. Work continues meanwhile; the copy is consistent all the same.

In a repository it is the repository's own server, with --server the organisation's, of all projects:
that needs the account "backup" (pfl-forge auth init --backups), or an administrator's.

With --into the new folder is one of that folder, and its name is its time in UTC. --keep removes the
oldest of those that --into made there, when the new one is complete and was read back. Rename a backup
to have it stay.

Commits and refs are git's, and not in it; nor are drafts and files in .forge. A backup has texts of
people and transcripts of agents: keep it as you keep those.`

const backupExample = `  pfl-forge backup ../backup-2026-11-25
  pfl-forge backup --server tls://nats.example.com --nkey backup.nk /var/backups/pfl-forge/monday
  pfl-forge backup --server tls://nats.example.com --nkey backup.nk --into /var/backups/pfl-forge --keep 14`

// BackupCommand returns the command backup. The folder and --into exclude each
// other by a check of its own, since one is an argument and no flag.
func BackupCommand(a *kit.App) *cobra.Command {
	var (
		format render.Format
		into   string
		keep   int
	)
	cmd := &cobra.Command{
		Use:     "backup [<folder>]",
		Short:   "copy everything that the server keeps",
		Long:    backupHelp,
		Example: backupExample,
		Args:    kit.Between(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			switch {
			case given("into") && len(args) > 0:
				return kit.Usage(errors.New("--into makes a folder of its own: leave the folder out, or --into"))
			case given("into") && into == "":
				return kit.Usage(errors.New("--into: the folder is empty"))
			case given("keep") && !given("into"):
				return kit.Usage(errors.New("--keep needs --into, the folder whose backups it is about"))
			case given("keep") && keep < 1:
				return kit.Usage(errors.New("--keep: at least 1, the new one; leave it out to keep all"))
			case given("into"):
				return writeInto(cmd.Context(), a, into, keep, format)
			case len(args) == 0:
				return kit.Usage(kit.Missing("the folder, or --into,"))
			}
			return write(cmd.Context(), a, args[0], format)
		},
	}
	cmd.Flags().StringVar(&into, "into", "", "make a new `folder` in this one, named by its time")
	cmd.Flags().IntVar(&keep, "keep", 0, "with --into: leave this `number` of backups there and remove older ones; default: all stay")
	_ = cmd.MarkFlagDirname("into")
	_ = cmd.RegisterFlagCompletionFunc("keep", cobra.NoFileCompletions)
	kit.OutputFlag(cmd, &format)
	return cmd
}

// write makes a backup.
// dir must not be there yet, so that no backup is written over another one.
func write(ctx context.Context, a *kit.App, dir string, format render.Format) error {
	b, end, err := server(ctx, a)
	if err != nil {
		return err
	}
	defer end()
	m, err := b.Backups.Write(ctx, dir, func(s backup.Stream) { a.Say("%s", line(&s)) })
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return a.Print(format, m, nil, func() error { return printWritten(a, dir, m) })
}

// writeInto makes a backup in a folder of them, and removes those that are too many.
//
// A new backup is complete even if an older one could not be removed: then both
// the result is printed and an error is returned, and a job that watches the
// exit code hears of the disk that fills up.
func writeInto(ctx context.Context, a *kit.App, parent string, keep int, format render.Format) error {
	b, end, err := server(ctx, a)
	if err != nil {
		return err
	}
	defer end()
	got, failed := b.Backups.WriteInto(ctx, parent, keep, func(s backup.Stream) { a.Say("%s", line(&s)) })
	if got != nil { // also where an older one could not be removed
		for _, path := range got.Left {
			a.Say("%s is left alone: it does not look like a backup that --into made", kit.Safe(path))
		}
		err = a.Print(format, got, []string{got.Folder}, func() error {
			for _, path := range got.Removed {
				if _, err := fmt.Fprintf(a.Out, "%s is removed\n", kit.Safe(path)); err != nil {
					return err
				}
			}
			for _, path := range got.Backups[:len(got.Backups)-1] {
				if _, err := fmt.Fprintf(a.Out, "%s is kept\n", kit.Safe(path)); err != nil {
					return err
				}
			}
			return printWritten(a, got.Folder, &got.Manifest)
		})
	}
	if failed != nil {
		return fmt.Errorf("backup: %w", failed)
	}
	return err
}

// printWritten tells a person how large a backup is, and how long it took.
// The size is that of all streams as they are in the folder.
func printWritten(a *kit.App, dir string, m *backup.Manifest) error {
	var bytes int64
	for i := range m.Streams {
		bytes += m.Streams[i].Bytes
	}
	_, err := fmt.Fprintf(a.Out, "%s: %s in %s\n", kit.Safe(dir), render.Size(bytes), m.Ended.Sub(m.Begun).Round(time.Millisecond))
	return err
}

// line returns a stream in words.
// Columns are aligned for the longest names there are, as the lines come one at a time.
func line(s *backup.Stream) string {
	return fmt.Sprintf("%-24s %8d messages %10s", s.Name, s.Messages, render.Size(s.Bytes))
}

// server connects to the server that is copied. The caller ends the connection. An organisation's
// is reached as an administrator, who needs no project and no runner: a backup has all projects. In
// a repository a server is started if no run has it; where nothing was ever submitted is an error.
func server(ctx context.Context, a *kit.App) (b *bus.Bus, end func(), err error) {
	if a.Remote() {
		if b, err = connect.Administrator(ctx, a); err != nil {
			return nil, nil, err
		}
		return b, b.Close, nil
	}
	t, err := target.Reader(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	if t.Bus == nil {
		t.Close()
		return nil, nil, errors.New("no intent was submitted here yet, so there is nothing to copy")
	}
	return t.Bus, t.Close, nil
}
