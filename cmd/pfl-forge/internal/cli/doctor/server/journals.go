package server

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// checkJournals checks the chains of the project's journal and of the intents that have not ended:
// its cost depends on what is under way, not on what ever was. audit-log verify checks all. A
// journal that cannot be read at all is a warning, one with a message in the way is broken.
func checkJournals(ctx context.Context, t *target.Target) []diagnosis.Finding {
	keys, err := underWay(ctx, t)
	if err != nil {
		return []diagnosis.Finding{diagnosis.New("journals", diagnosis.Warning, err.Error(), "")}
	}
	var found []diagnosis.Finding
	for _, key := range keys {
		list, err := t.Bus.Journal.Troubles(ctx, key)
		if err != nil {
			found = append(found, diagnosis.New("journals", diagnosis.Warning, err.Error(), ""))
		}
		for i := range list {
			found = append(found, heldJournal(&list[i]))
		}
	}
	if len(found) == 0 {
		found = []diagnosis.Finding{diagnosis.New("journals", diagnosis.Healthy, render.Count(len(keys), "journal")+" under way, none damaged", "")}
	}
	return found
}

// heldJournal returns the finding about a message for which nothing is decided any more.
// The hint names --repair only where that would help: see ADR-0092 for which messages are loose.
func heldJournal(at *journal.Trouble) diagnosis.Finding {
	verify := "pfl-forge audit-log verify"
	if at.Key.Intent != "" {
		verify += " " + string(at.Key.Intent)
	}
	hint := "nothing is decided on it any more; see " + verify
	if at.Loose {
		hint += ", or pfl-forge doctor --repair, which sets the message aside"
	}
	return diagnosis.New("journals", diagnosis.Broken, fmt.Sprintf("%s: %s", at.Key, at.Reason), hint)
}

// Repair sets those messages aside that hold journals up and can be. Without yes it asks
// for each, where a person can be asked, and otherwise only says what it would do. The exit
// code is ExitError while any is left, so that a script that repairs notices what it did
// not. It needs no runner, since a damaged journal may keep every runner from starting.
//
// What people said in such a message is printed before the question, because it
// is lost with it: an approval has to be given again. A message that was followed
// by another one meanwhile is an error of SetAside, and nothing is changed by it.
func Repair(ctx context.Context, a *kit.App, yes bool) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.Bus == nil {
		a.Say("there is no store yet, so nothing to repair")
		return nil
	}
	keys, err := underWay(ctx, t)
	if err != nil {
		return err
	}
	term, asks := a.Terminal()
	if asks {
		defer term.Close()
	}
	left := 0 // messages that hold a journal up when this ends
	for _, key := range keys {
		list, err := t.Bus.Journal.Troubles(ctx, key)
		if err != nil {
			return err
		}
		for i := range list {
			at, done := &list[i], false
			fmt.Fprintf(a.Out, "%s: %s\n", key, kit.Safe(at.Reason))
			if len(at.Words) > 0 {
				fmt.Fprintf(a.Out, "  it has input of people, who would have to give it again: %s\n", kit.Safe(strings.Join(at.Words, "; ")))
			}
			switch {
			case !at.Loose:
				fmt.Fprintln(a.Out, "  it stays: later messages build on it, or an earlier one was altered; put a backup in place, or see pfl-forge recover --dry-run")
			case yes:
				done = true
			case asks:
				if done, err = a.Confirm(ctx, term, "  set it aside? What it decided is decided again; its bytes stay in the journal"); err != nil {
					return err
				}
			default:
				fmt.Fprintln(a.Out, "  it would be set aside: what it decided is decided again, and its bytes stay in the journal. Do so with --yes")
			}
			if !done {
				left++
				continue
			}
			if err := t.Bus.Journal.SetAside(ctx, *at, cmp.Or(t.Actor, "an operator"), time.Now()); err != nil {
				return err
			}
			fmt.Fprintln(a.Out, "  set aside; runners continue the journal within a minute, or when they start")
		}
	}
	if left > 0 {
		return kit.ExitError
	}
	return nil
}

// underWay returns the project's key and those of the intents that have not
// ended, whose lists may be what cannot be read.
func underWay(ctx context.Context, t *target.Target) ([]forge.Key, error) {
	all, err := t.Bus.Journal.Summaries(ctx, t.Project) // and not from a list that was kept
	if err != nil {
		return nil, err
	}
	keys := []forge.Key{t.Key("")}
	for i := range all {
		if !all[i].Status.Ended() {
			keys = append(keys, all[i].Key)
		}
	}
	return keys, nil
}
