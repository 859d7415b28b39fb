package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// maxRetries bounds how many intents one command retries: each of them may cost money at once.
const maxRetries = 200

// retryFlags are the flags of retry --all.
type retryFlags struct {
	// all says that everything that failed is retried. The others are of no use without it.
	all bool
	// yes says that the person is not asked for confirmation.
	yes bool
	// dryRun says that the list is printed, and nothing is retried.
	dryRun bool
	// reason is the only one that counts, as the person spells it; empty: any does.
	reason string
	// since is the time before which nothing counts, as the person spells it; empty: any does.
	since string
	// format is the one of the list in a dry run, and of the rulings otherwise.
	format render.Format
}

// failed is an intent that failed, with the reasons of its last run.
type failed struct {
	// ID is the intent's.
	ID forge.IntentID `json:"id" yaml:"id"`
	// Reasons are those of the tasks that failed, each once, in the words of the guide on failures.
	// They are empty if no attempt failed, as where intents wait for each other in a circle.
	Reasons []string `json:"reasons" yaml:"reasons"`
	// At is when the run ended.
	At time.Time `json:"at" yaml:"at"`
	// Why says, for a person, why it failed.
	Why string `json:"why" yaml:"why"`
	// Title is the intent's.
	Title string `json:"title" yaml:"title"`
}

// baseReason is the reason of those that wait for a red base branch: nothing of them failed.
const baseReason = "base"

// fits reports whether an intent failed, or waits for a red base branch. With instructions
// only the former count: they would have each of the latter mend the base branch.
func fits(s *forge.Summary, said pending.Said) bool {
	return s.Status.Failed() || s.Waiting == forge.WaitingBase && said.Text == ""
}

// retryAll retries everything that failed or waits for a red base branch, for a reason
// and since a time if these are given. What is not failed any more when its turn comes
// is left alone, so that the command can be repeated. In data formats there is one
// document: the list with --dry-run or without any, and otherwise the rulings.
func retryAll(ctx context.Context, a *kit.App, f *retryFlags, said pending.Said) error {
	since, err := kit.ParseSince(f.since, time.Now())
	if err != nil {
		return kit.Usage(fmt.Errorf("--since: %w", err))
	}
	if err := checkReason(f.reason); err != nil {
		return kit.Usage(err)
	}
	c, ok := a.Terminal()
	if ok {
		defer c.Close()
	} else if !f.yes && !f.dryRun {
		return kit.Usage(errors.New("--all asks for confirmation, and there is no terminal: give --yes, or --dry-run"))
	}
	list, err := failures(ctx, a, normal(f.reason), since, said)
	switch {
	case err != nil:
		return err
	case f.format.Data() && (f.dryRun || len(list) == 0):
		return f.format.Write(a.Out, list)
	case len(list) == 0:
		a.Say("no failed intent matches; all that failed: pfl-forge status --status error,blocked")
		return nil
	}
	left := 0
	if !f.dryRun {
		list, left = oldest(list)
	}
	if !f.format.Data() {
		if err := printFailures(a, list); err != nil {
			return err
		}
	}
	if f.dryRun {
		return nil
	}
	if left > 0 {
		a.Say("at most %d are retried at once, those that failed first: give the command again for %d more", maxRetries, left)
	}
	if !f.yes {
		sure, err := a.Confirm(ctx, c, "Retry "+render.Count(len(list), "intent")+"?")
		if err != nil || !sure {
			return err
		}
	}
	return retryEach(ctx, a, list, f.format, said)
}

// oldest returns the failures that one command retries, those that failed first, and how many
// are left for the next. What fails once more comes last then, so that each has its turn.
func oldest(list []failed) (first []failed, left int) {
	list = slices.SortedFunc(slices.Values(list), func(a, b failed) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(string(a.ID), string(b.ID)))
	})
	n := min(len(list), maxRetries)
	return list[:n], len(list) - n
}

// retryEach retries each intent that is still failed when its turn comes.
// Each is read again first, because a person may have waited long with the answer.
func retryEach(ctx context.Context, a *kit.App, list []failed, format render.Format, said pending.Said) error {
	return target.Once(ctx, a, func(t *target.Target) error {
		b := pending.Batch{App: a, Format: format, GoesOn: true}
		for i := range list {
			id := list[i].ID
			now, err := t.View(ctx, id)
			if err != nil {
				b.Fail(err)
				continue
			}
			if fits(&now.Summary, said) { // or somebody was faster
				b.Send(ctx, t, string(id), pending.Retry.Done, pending.Retry.Event(t.Key(id), said))
			}
		}
		return b.End(t)
	})
}

// checkReason returns an error for a word that names no reason.
// The error lists all reasons there are, sorted. An empty word is any reason.
func checkReason(word string) error {
	known := []string{"credentials", "dependency", "rejected", "verify_failed", "empty", "conflict", baseReason}
	for _, r := range render.Reasons() {
		known = append(known, string(r.Name))
	}
	if word == "" || slices.Contains(known, normal(word)) {
		return nil
	}
	slices.Sort(known)
	return fmt.Errorf("--reason: there is no reason %q; those there are: %s", word, strings.Join(known, ", "))
}

// printFailures prints the failures as a table.
func printFailures(a *kit.App, list []failed) error {
	columns := render.Columns{Header: []string{"ID", "REASON", "FAILED", "WHY", "TITLE"}, Shrink: 4}
	for i := range list {
		f := &list[i]
		columns.Add(string(f.ID), strings.Join(f.Reasons, ","), f.At.Local().Format("2006-01-02 15:04"), render.FirstLine(f.Why), f.Title)
	}
	return a.Table(&columns)
}

// failures returns the intents that fit, for a reason, empty for any, since a
// time. They are sorted by id, and the list is never nil. Only those that may
// fit are read whole. reason is in the form of normal.
func failures(ctx context.Context, a *kit.App, reason string, since time.Time, said pending.Said) ([]failed, error) {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	all, err := t.Summaries(ctx)
	if err != nil {
		return nil, err
	}
	list := []failed{}
	for i := range all {
		if s := &all[i]; !fits(s, said) || s.UpdatedAt.Before(since) { // nothing of it ended later
			continue
		}
		v, err := t.View(ctx, all[i].Key.Intent)
		if err != nil {
			return nil, err
		}
		f := failureOf(v)
		if !f.At.Before(since) && (reason == "" || slices.Contains(f.Reasons, reason)) {
			list = append(list, f)
		}
	}
	return list, nil
}

// failureOf returns why the last run of an intent failed: for each task that
// failed, and for the intent as a whole, how its last attempt ended, and
// whether another intent blocked it. The intent as a whole counts only where no
// task gave a reason; reflections never do, as they come after the end.
func failureOf(v *forge.View) failed {
	f := failed{ID: v.Intent.ID, Reasons: []string{}, At: v.Summary.UpdatedAt, Why: v.Summary.Reason, Title: v.Intent.Title}
	if v.Summary.Waiting == forge.WaitingBase {
		f.Reasons = append(f.Reasons, baseReason)
		return f
	}
	if len(v.History) == 0 {
		return f
	}
	h := &v.History[len(v.History)-1]
	f.At = h.CreatedAt
	add := func(reason string) {
		if reason = normal(reason); reason != "ok" && !slices.Contains(f.Reasons, reason) {
			f.Reasons = append(f.Reasons, reason)
		}
	}
	for _, adj := range h.Adjustments {
		if adj.Rule == "block-dependency" {
			add("dependency")
		}
	}
	last := map[forge.TaskID]string{}
	for _, s := range h.StepResults {
		if s.Step != forge.StepReflect {
			last[s.TaskID] = s.Outcome
		}
	}
	for i := range v.Tasks {
		if outcome, tried := last[v.Tasks[i].ID]; tried && v.Tasks[i].Status == forge.TaskFailed {
			add(outcome)
		}
	}
	if outcome, tried := last[""]; tried && len(f.Reasons) == 0 {
		add(outcome)
	}
	return f
}

// normal returns the name of a reason as the table of failures has it: a person may say
// credentials for auth, and the history separates words with spaces.
func normal(reason string) string {
	reason = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(reason)), " ", "_")
	if reason == "credentials" {
		return string(forge.FailAuth)
	}
	return reason
}
