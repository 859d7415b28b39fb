// Package backups is the commands that copy what a server keeps, and put it
// back.
//
// The copying is package bus/backup's. Here is whose server it is, and, after
// a restore in a repository, what its base branch has that the backup does
// not know of: see compare.
package backups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/backup"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

const backupHelp = `Copy everything that the server keeps into a new folder: requests, journals, changes, transcripts
and stored files. Work goes on meanwhile; what is copied belongs together all the same.

In a repository it is the repository's own server, with --server the organisation's, of all projects:
that needs the account "backup" (pfl-forge auth init --backups), or an administrator's.

Commits and refs are git's, and not in it; nor are drafts and files in .forge. A backup has texts of
people and transcripts of agents: keep it as you keep those.`

const backupExample = `  pfl-forge backup ../backup-2026-11-25
  pfl-forge backup --server tls://nats.example.com --nkey backup.nk /var/backups/pfl-forge/monday`

// BackupCommand returns the command backup.
func BackupCommand(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:     "backup <folder>",
		Short:   "copy everything that the server keeps",
		Long:    backupHelp,
		Example: backupExample,
		Args:    kit.Between(1, 1, "the folder"),
		RunE:    func(cmd *cobra.Command, args []string) error { return write(cmd.Context(), a, args[0], format) },
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

// write makes a backup.
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
	return a.Print(format, m, nil, func() error {
		var bytes int64
		for i := range m.Streams {
			bytes += m.Streams[i].Bytes
		}
		_, err := fmt.Fprintf(a.Out, "%s: %s in %s\n", kit.Safe(dir), render.Size(bytes), m.Ended.Sub(m.Begun).Round(time.Millisecond))
		return err
	})
}

// line returns a stream in words.
func line(s *backup.Stream) string {
	return fmt.Sprintf("%-24s %8d messages %10s", s.Name, s.Messages, render.Size(s.Bytes))
}

// server connects to the server that is copied. The caller ends the
// connection.
func server(ctx context.Context, a *kit.App) (b *bus.Bus, end func(), err error) {
	if a.Remote() {
		if b, err = target.Administrator(ctx, a); err != nil {
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
