// Package clean is the command that removes the leftovers of finished intents.
//
// In a repository it removes them itself: package leftovers finds refs, files
// and objects, and nothing of an intent goes that a retry could need: failed
// ones are left alone. With --server it asks an organisation's implementers,
// who know the origin, as many intents at a time as one request may name.
// Either way a call that is cut off is completed by the next one, and --dry-run
// prints the same list and removes nothing.
package clean

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/leftovers"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/jobs"
)

const cleanHelp = `Remove the leftovers of intents that are done, rejected or cancelled: the commits of
their attempts under refs/forge/<intent>, checkouts, the state and sessions of agents,
whole transcripts, files in .forge/logs. Merged changes stay, and so does everything that
history, show and costs print. Transcript lines expire on their own after 30 days.

Failed intents can be retried and are left alone; cancel them first. A run in progress
removes checkouts and agents' state itself.

With --server an implementer does it, at the git origin and in the object stores. Anything
that is still stopping there, such as an agent that was just cancelled, is kept and listed;
clean again a moment later.`

// flags are the flags of clean.
type flags struct {
	dryRun bool
	// older is how long ago an intent has to have ended at least, as it was typed; empty for any
	// time.
	older  string
	format render.Format
}

// cleaned lists the things that an intent left, as programs read it.
type cleaned struct {
	ID      forge.IntentID `json:"id"       yaml:"id"`
	Status  forge.Status   `json:"status"   yaml:"status"`
	EndedAt time.Time      `json:"ended_at" yaml:"ended_at"`

	// Refs counts the commits of attempts that refs keep, and Paths are files and folders.
	// With --server only the number of refs is known.
	Refs  int      `json:"refs"            yaml:"refs"`
	Paths []string `json:"paths,omitempty" yaml:"paths,omitempty"`

	// Bytes is the size of Paths; with --server that of stored sessions and transcripts.
	Bytes    int64 `json:"bytes"       yaml:"bytes"`
	Sessions int   `json:"sessions"    yaml:"sessions"`
	Logs     int   `json:"transcripts" yaml:"transcripts"`

	// Removed is false if it only would be removed, or could not be.
	Removed bool `json:"removed" yaml:"removed"`
}

// Command returns the command clean. It takes any number of ids, and no id for every intent that
// is over. Completion offers those alone.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:               "clean [<id>...]",
		Short:             "remove the leftovers of finished intents",
		Long:              cleanHelp,
		Example:           "  pfl-forge clean --dry-run\n  pfl-forge clean --older-than 30d\n  pfl-forge clean reset-link",
		ValidArgsFunction: complete.Intents(a, leftovers.Over, 0),
		RunE:              func(cmd *cobra.Command, args []string) error { return clean(cmd.Context(), a, args, &f) },
	}
	set := cmd.Flags()
	set.BoolVarP(&f.dryRun, "dry-run", "n", false, "print what would be removed, and remove nothing")
	set.StringVar(&f.older, "older-than", "", "only of intents that ended at least this long ago: a `duration` such as 12h or 30d")
	kit.OutputFlag(cmd, &f.format)
	return cmd
}

// parseAge parses a duration, which may be in days such as 30d: Go's own know no days, since those
// are not of one length on every clock. Here a day has 24 hours. An empty duration is 0, a
// negative one an error.
func parseAge(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 12h or 30d", s)
	}
	return d, nil
}

// clean removes the things that some intents left, which their ids or their age choose.
//
// Nothing is removed before all arguments are known to be right: an id that is unknown, or of an
// intent that could be retried, ends the command with nothing done.
func clean(ctx context.Context, a *kit.App, args []string, f *flags) error {
	ids, err := kit.IntentIDs(args)
	if err != nil {
		return err
	}
	age, err := parseAge(f.older)
	if err != nil {
		return kit.Usage(fmt.Errorf("--older-than: %w", err))
	}
	// The zero time is any time, and not now: the times of ends come from other machines' clocks,
	// and one that runs ahead must not exempt its intents.
	var before time.Time // whenever: clocks differ
	if age > 0 {
		before = time.Now().Add(-age)
	}
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.Remote {
		return cleanRemote(ctx, a, t, ids, before, f)
	}
	if t.Session == nil {
		if len(ids) > 0 {
			return target.NoIntent(ids[0])
		}
		return printCleaned(a, f, []cleaned{})
	}
	all, err := t.Summaries(ctx)
	if err != nil {
		return err
	}
	over, err := chooseOver(all, ids, before)
	if err != nil {
		return err
	}
	return cleanEach(ctx, a, t, over, f)
}

// chooseOver returns the intents whose leftovers are to be removed: of those with the ids, or of
// all if there are none, the ones that ended before a time. The zero time stands for any.
//
// An id that no intent has is an error, and so is one of an intent that is not over, with what
// would have to happen to it first. One that ended too recently is left out without a word: the
// age is a filter, and an id no mistake. The order is that of the ids, or that of the list.
func chooseOver(all []forge.Summary, ids []forge.IntentID, before time.Time) ([]forge.Summary, error) {
	known := map[forge.IntentID]*forge.Summary{}
	for i := range all {
		known[all[i].Key.Intent] = &all[i]
		if len(ids) == 0 && !leftovers.Over(&all[i]) {
			delete(known, all[i].Key.Intent)
		}
	}
	if len(ids) == 0 {
		for i := range all {
			if known[all[i].Key.Intent] != nil {
				ids = append(ids, all[i].Key.Intent)
			}
		}
	}
	var list []forge.Summary
	for _, id := range ids {
		s := known[id]
		switch {
		case s == nil:
			return nil, target.NoIntent(id)
		case !leftovers.Over(s):
			return nil, fmt.Errorf("%s %s", id, jobs.Needed(s))
		case before.IsZero() || !s.UpdatedAt.After(before):
			list = append(list, *s)
		}
	}
	return list, nil
}

// cleanEach removes the things that each intent left in this repository, and
// prints them. An intent that left nothing is not listed.
//
// An error is about one intent and stops no other. All are returned together after the list is
// printed, which says of each intent whether its leftovers are gone.
func cleanEach(ctx context.Context, a *kit.App, t *target.Target, over []forge.Summary, f *flags) error {
	places, err := t.Session.Places(ctx)
	if err != nil {
		return err
	}
	list := []cleaned{}
	var errs []error
	for i := range over {
		s := &over[i]
		rest, err := places.Find(ctx, s.Key)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Key.Intent, err))
			continue
		}
		if rest.Empty() {
			continue
		}
		c := cleaned{
			ID: s.Key.Intent, Status: s.Status, EndedAt: s.UpdatedAt, Refs: rest.Refs, Paths: rest.Paths, Bytes: rest.Bytes,
			Sessions: rest.Sessions(), Logs: len(rest.Objects) - rest.Sessions(),
		}
		if !f.dryRun {
			err := places.Remove(ctx, rest)
			if c.Removed = err == nil; err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", s.Key.Intent, err))
			}
		}
		list = append(list, c)
	}
	return errors.Join(append(errs, printCleaned(a, f, list))...)
}

// printCleaned prints the things that intents left, in a format. An empty list is an answer:
// programs get [] and no error.
func printCleaned(a *kit.App, f *flags, list []cleaned) error {
	names := kit.Names(list, func(c *cleaned) string { return string(c.ID) })
	return a.Print(f.format, list, names, func() error {
		if len(list) == 0 {
			a.Say("nothing to remove")
			return nil
		}
		return printTable(a, f, list)
	})
}

// printTable prints a row for each intent, and a line with the sum. An organisation's implementers
// tell no paths, so without a repository there is no column of files. Refs take next to no room
// themselves: the commits that they kept are freed by git's own garbage collection, which the line
// names.
func printTable(a *kit.App, f *flags, list []cleaned) error {
	columns := render.Columns{Header: []string{"ID", "STATUS", "ENDED", "REFS", "FILES", "SIZE", "SESSIONS", "TRANSCRIPTS"}}
	if a.Remote() {
		columns.Header = slices.Delete(columns.Header, 4, 5)
	}
	var refs int
	var bytes int64
	for i := range list {
		c := &list[i]
		refs, bytes = refs+c.Refs, bytes+c.Bytes
		cells := []string{
			string(c.ID), string(c.Status), c.EndedAt.Local().Format(time.DateTime), fmt.Sprint(c.Refs), fmt.Sprint(len(c.Paths)),
			render.Size(c.Bytes), fmt.Sprint(c.Sessions), fmt.Sprint(c.Logs),
		}
		if a.Remote() {
			cells = slices.Delete(cells, 4, 5)
		}
		columns.Add(cells...)
	}
	if err := a.Table(&columns); err != nil {
		return err
	}
	did, of, frees := "freed", "files", "git gc"
	if f.dryRun {
		did = "would free"
	}
	if a.Remote() {
		of, frees = "sessions and transcripts", "git gc at the origin"
	}
	a.Say("%s %s of %s, and %s (run %s to free their commits)", did, render.Size(bytes), of, render.Count(refs, "ref"), frees)
	return nil
}
