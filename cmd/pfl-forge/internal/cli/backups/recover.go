package backups

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local/loss"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

const recoverHelp = `Repair a repository whose store, .forge/nats, has lost data: it was removed, or a machine lost
its power before everything was on the disk. What .forge shows tells what is missing. If you have a
backup, put that in place instead: pfl-forge restore.

An intent of which the store has an older state is paused, unless it had ended by then: cancel it, or
resume it to continue from there. An intent of which the store has nothing becomes a draft in
.forge/intent-drafts, unless it had ended or the base branch has changes of it: read the drafts before
the next run takes them in. Approvals and answers that are lost are asked for again.

Where the journals contradict each other, the whole store is moved to .forge/kept, and every intent is taken
for one of which the store has nothing.

The files that showed what is lost are moved to .forge/kept. Commits stay as they are.`

// recovered is the document that recover prints for programs.
type recovered struct {
	// Done is false with --dry-run.
	Done    bool       `json:"done"    yaml:"done"`
	Intents []recovery `json:"intents" yaml:"intents"`
	// Contradiction says how the journals contradict one another; then nothing
	// of the store goes on.
	Contradiction string `json:"contradiction,omitempty" yaml:"contradiction,omitempty"`
	// Store is where the store was moved for that.
	Store string `json:"store,omitempty" yaml:"store,omitempty"`
}

// recovery tells how it goes on with an intent of which something is lost.
type recovery struct {
	local.Rescued `yaml:",inline"`
	// Merged are the tasks that the base branch has, and that are not merged as
	// far as the store knows.
	Merged local.Commits `json:"merged,omitempty" yaml:"merged,omitempty"`
	// Paused says that the intent waits for a person.
	Paused bool `json:"paused" yaml:"paused"`
}

// RecoverCommand returns the command recover.
// It is refused with --server: there the files that show what is missing are not at hand.
func RecoverCommand(a *kit.App) *cobra.Command {
	var (
		format render.Format
		dryRun bool
	)
	cmd := &cobra.Command{
		Use:     "recover",
		Short:   "repair a store that has lost data",
		Long:    recoverHelp,
		Example: "  pfl-forge recover --dry-run\n  pfl-forge recover",
		Args:    kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Remote() {
				return kit.Usage(errors.New("recover is for a repository's own store; that of an organisation is restored from a backup (pfl-forge restore), " +
					"or see what is missing with pfl-forge doctor --deep in a clone"))
			}
			return recoverStore(cmd.Context(), a, dryRun, format)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what is missing, and change nothing")
	kit.OutputFlag(cmd, &format)
	return cmd
}

// recoverStore sets aside what shows more than the store has, and has a person decide on the rest.
//
// Both ways fill in the same document, so that --dry-run is read as the real
// call is. Nothing lost is no error. After a crash it can be called again.
func recoverStore(ctx context.Context, a *kit.App, dryRun bool, format render.Format) error {
	doc := recovered{Done: !dryRun, Intents: []recovery{}}
	var err error
	if dryRun {
		err = missing(ctx, a, &doc)
	} else {
		err = rescued(ctx, a, &doc)
	}
	if err != nil {
		return err
	}
	names := kit.Names(doc.Intents, func(r *recovery) string { return string(r.ID) })
	return a.Print(format, doc, names, func() error {
		switch {
		case doc.Store != "":
			a.Say("the store contradicted itself, and is in %s now: %s", kit.Safe(doc.Store), kit.Safe(doc.Contradiction))
		case doc.Contradiction != "":
			a.Say("the store contradicts itself, and would be moved to .forge/kept: %s", kit.Safe(doc.Contradiction))
		case len(doc.Intents) == 0:
			a.Say("nothing is lost: the store has all that .forge shows")
		}
		for i := range doc.Intents {
			fmt.Fprintln(a.Out, kit.Safe(doc.Intents[i].words(dryRun)))
		}
		if len(doc.Intents) > 0 && !dryRun {
			a.Say("what the files showed is in .forge/kept\nnext: pfl-forge inbox, and read .forge/intent-drafts before pfl-forge run")
		}
		return nil
	})
}

// missing finds out what is lost, and changes nothing.
// It opens a Reader, which starts nothing that decides.
func missing(ctx context.Context, a *kit.App, doc *recovered) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	var lost []loss.Intent
	if lost, doc.Contradiction, err = t.Repo.Missing(ctx, t.Bus); err != nil {
		return err
	}
	for _, l := range lost {
		doc.Intents = append(doc.Intents, recovery{Rescued: local.Rescued{Intent: l}})
	}
	return nil
}

// rescued goes on with what the store has.
//
// The drafts are written and the files moved when the target is opened, by
// package local. Here the base branch is compared, and each intent of which the
// store has an older state is paused, so that no run repeats work whose outcome
// was lost. Of an intent that the store has nothing of there is nothing to pause.
func rescued(ctx context.Context, a *kit.App, doc *recovered) error {
	t, found, err := target.Rescuer(ctx, a, false)
	if err != nil {
		return err
	}
	defer t.Close()
	doc.Contradiction, doc.Store = found.Why, found.Moved
	if len(found.Intents) == 0 {
		return nil
	}
	more, _, err := t.Repo.Compare(ctx, t.Bus, t.Project)
	if err != nil {
		return err
	}
	doc.Intents = make([]recovery, len(found.Intents))
	for i := range found.Intents {
		r := &doc.Intents[i]
		r.Rescued = found.Intents[i]
		if n := slices.IndexFunc(more, func(x local.Ahead) bool { return x.Intent == r.ID }); n >= 0 {
			r.Merged = more[n].Merged
		}
		if r.Stored == 0 {
			continue
		}
		reason := "the store lost what was decided last; resume it to continue from here, or cancel it"
		if len(r.Merged) > 0 {
			reason = fmt.Sprintf("the store lost what was decided last, and the base branch has %s; cancel it, or resume it to have it made again", r.Merged)
		}
		if r.Paused, err = pause(ctx, t, r.ID, reason); err != nil {
			return err
		}
	}
	return nil
}

// words says for a person what became of an intent, or with dry what is missing. It names
// the commands that a person can choose from; the caller makes the text safe for a terminal.
func (r *recovery) words(dry bool) string {
	lost := fmt.Sprintf("%s: the files show record %d, the store ends at %d", r.ID, r.Shown, r.Stored)
	if r.Stored == 0 {
		lost = fmt.Sprintf("%s: the store has nothing of it", r.ID)
	}
	has := ""
	if len(r.Merged) > 0 {
		has = ", and the base branch has " + r.Merged.String()
	}
	switch {
	case dry:
		return lost
	case r.Paused:
		return fmt.Sprintf("%s%s: it is paused; pfl-forge resume %s, or pfl-forge cancel %s", lost, has, r.ID, r.ID)
	case r.Stored > 0:
		return fmt.Sprintf("%s%s: it had ended by then, and its files are as it ended", lost, has)
	case r.Draft != "":
		return fmt.Sprintf("%s: %s asks for it once more", lost, r.Draft)
	}
	return fmt.Sprintf("%s%s, and no draft was written: %s", lost, has, r.Why)
}
