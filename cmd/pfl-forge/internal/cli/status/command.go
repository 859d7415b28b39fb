// Package status is the command that lists the intents and how far they are, once or with
// --watch as a stream of lines until nothing is left to do. Its table is that of run, too.
//
// command.go reads and puts together one document, and prints it as a table with lines
// for a person below it; filter.go, page.go and running.go are the parts of that,
// watch.go is --watch. The table goes to standard output, everything else to standard
// error, so that the table alone can be piped. The exit code is 0 however the intents
// are: `pfl-forge run` has one that says. Tests of the pure parts are here.
package status

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/turns"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local/loss"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/forgedir"
)

// Document is the answer of status, as programs read it.
type Document struct {
	Project forge.ProjectID `json:"project" yaml:"project"`

	// Paused says that the project is paused as a whole.
	Paused bool `json:"paused,omitempty" yaml:"paused,omitempty"`

	// Accounts are those of agents that refuse calls, so that none is made.
	Accounts []document.Account `json:"accounts,omitempty" yaml:"accounts,omitempty"`

	// Turns says how many calls wait for their turn at the workers of an organisation.
	Turns *turns.State `json:"turns,omitempty" yaml:"turns,omitempty"`

	Intents []document.Item `json:"intents" yaml:"intents"`
	Counts  render.Counts   `json:"counts"  yaml:"counts"`
	Drafts  int             `json:"drafts"  yaml:"drafts"` // that wait for the next run

	// NoRunner says that no runner of an organisation is up: nothing goes on.
	NoRunner bool `json:"no_runner,omitempty" yaml:"no_runner,omitempty"`

	// Dead counts the messages that no replica could handle; doctor shows them.
	Dead int `json:"dead_letters" yaml:"dead_letters"`

	// Lost are the intents of a repository of which the store has less than
	// .forge shows. Nothing is decided then.
	Lost []loss.Intent `json:"lost,omitempty" yaml:"lost,omitempty"`
	// Damage says what is wrong with the journal of the project. Nothing is decided then, either.
	Damage string `json:"damage,omitempty" yaml:"damage,omitempty"`
	// lost has both; nil if the store is whole.
	lost *loss.Error

	// Problems are the mistakes in files that a person wrote. They are of the
	// repository, and so never of an organisation's project.
	Problems []forgedir.Problem `json:"problems,omitempty" yaml:"problems,omitempty"`
}

// noRunner says why nothing goes on.
const noRunner = "no runner is up; nothing runs until one starts: " + target.StartRunner

// flags are the flags of status.
type flags struct {
	filter

	format render.Format
	watch  bool
	limit  int // intents of a page; 0: all; below 0: as many as suit the output
	page   int // counted from 1
}

// Command returns the command status.
// It changes nothing, and needs no run.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "status",
		Aliases: []string{"ls", "list"},
		Short:   "list the intents and their progress",
		Example: "  pfl-forge status\n  pfl-forge status --watch\n  pfl-forge status --waiting approval,clarification\n" +
			"  pfl-forge status --label api --type fix --since 24h -o json",
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return status(cmd.Context(), a, &f) },
	}
	kit.OutputFlag(cmd, &f.format)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "keep showing what happens, until nothing is left to do")
	set := cmd.Flags()
	set.IntVar(&f.limit, "limit", -1, "at most this many intents, 0 for all; default: all, on a terminal 40")
	set.Lookup("limit").DefValue = "0" // which help does not print: -1 says nothing to a person
	set.IntVar(&f.page, "page", 1, "the `number` of the page to show, with a limit")
	f.filterFlags(cmd)
	return cmd
}

// status prints the list once, or follows what happens.
//
// Filters come first, then the order, then pages. Counts are of all intents
// that the filters leave, and not of the page alone. A repository's files are
// looked at as well, since drafts and mistakes are no intents yet.
func status(ctx context.Context, a *kit.App, f *flags) error {
	if err := f.check(); err != nil {
		return kit.Usage(err)
	}
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	all, err := t.Summaries(ctx)
	if err != nil {
		return err
	}
	if err := t.CheckProject(ctx, len(all) > 0); err != nil {
		return err
	}
	if t.NoRunner {
		a.Say("%s", a.Style(a.Err).Bad(noRunner))
	}
	if f.watch {
		return follow(ctx, a, t, f)
	}
	dead, err := t.Dead(ctx)
	if err != nil {
		return err
	}
	some := len(all) > 0
	all = slices.DeleteFunc(all, func(s forge.Summary) bool { return !f.Selects(&s) })
	all, depths := openFirst(render.Tree(all))
	doc := Document{Project: t.Project, Intents: document.Items(all), Counts: render.CountIntents(all), NoRunner: t.NoRunner, Dead: len(dead), Turns: t.Turns}
	if err := shared(ctx, t, &doc); err != nil {
		return err
	}
	if t.Bus != nil && !t.Owner {
		if err := running(ctx, t, all, doc.Intents); err != nil {
			a.Say("cannot read the usage of running attempts: %v", err)
		}
	}
	if t.Repo != nil && !t.Remote {
		if err := ofRepository(ctx, a, t, &doc); err != nil {
			return err
		}
	}
	if f.format.Data() || f.format == render.Name {
		first, end := window(len(all), max(f.limit, 0), f.page)
		doc.Intents, all = doc.Intents[first:end], all[first:end]
	}
	names := kit.Names(all, func(s *forge.Summary) string { return string(s.Key.Intent) })
	return a.Print(f.format, doc, names, func() error {
		if some && len(all) == 0 {
			a.Say("no intent matches these filters; all: pfl-forge status")
			return nil
		}
		return printText(a, t, f, &doc, all, depths)
	})
}

// sayTurns says why calls wait that could be made, if some do. s is nil where no calls are
// counted. Either the project has as many calls as it may, or all workers are taken (ADR-0093).
func sayTurns(a *kit.App, s *turns.State) {
	if s == nil {
		return
	}
	text := render.Count(s.Held, "call") + " waits for its turn"
	if s.Held != 1 {
		text = render.Count(s.Held, "call") + " wait for their turn"
	}
	if s.Bound > 0 && s.Calls >= s.Bound {
		a.Say("%s: %d of the project's calls are under way (bound %d)", text, s.Calls, s.Bound)
		return
	}
	a.Say("%s: the workers have as many as they take, %d of them of the project", text, s.Calls)
}

// ofRepository adds the drafts, losses and problems of a person's repository.
// That the problems of files cannot be read is told, and is no error: the list is worth more.
func ofRepository(ctx context.Context, a *kit.App, t *target.Target, doc *Document) (err error) {
	doc.Drafts = t.Repo.Drafts()
	look, err := t.Repo.Look(t.Bus, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, look.Close()) }()
	lost, err := look.Lost(ctx, t.Stored)
	if err != nil {
		return err
	}
	if doc.lost = lost; lost != nil {
		doc.Lost, doc.Damage = lost.Lost, lost.Damage
	}
	problems, err := t.FileProblems(ctx, look)
	if err != nil {
		a.Say("cannot read the problems with your files: %v", err)
	}
	doc.Problems = problems
	return nil
}

// printText prints the table of intents with what a person has to know besides, and says
// what to do next.
//
// all and depths are the whole list, from which the page is cut here. The line about the next
// step comes last, and is one at most: a loss before decisions, and these before new work.
func printText(a *kit.App, t *target.Target, f *flags, doc *Document, all []forge.Summary, depths []int) error {
	if len(all) == 0 {
		a.Say("no intents yet")
		if t.Repo != nil && !t.Remote && doc.lost == nil && t.Repo.Forgotten() {
			a.Say("%s", a.Style(a.Err).Bad(".forge/intents has intents that the store does not know: .forge/nats was removed; next: pfl-forge recover --dry-run"))
		}
	} else {
		sayRunning(a, doc.Intents)
		first, end := window(len(all), f.limitOf(a), f.page)
		withoutRun(t, all[first:end])
		if err := Table(a, all[first:end], depths[first:end], f.format == render.Wide); err != nil {
			return err
		}
		if text := f.position(first, end, len(all)); text != "" {
			a.Say("%s", text)
		}
		a.Say("%s", render.Tally(all))
	}
	if doc.Paused {
		a.Say("%s", a.Style(a.Err).Attention("the project is paused; next: pfl-forge resume --all"))
	}
	sayTurns(a, doc.Turns)
	for i := range doc.Accounts {
		a.Say("%s", a.Style(a.Err).Attention(doc.Accounts[i].Line()))
	}
	sayMore(a, doc.Intents)
	if doc.Drafts > 0 {
		a.Say("%s in .forge/intent-drafts", render.Count(doc.Drafts, "draft"))
	}
	for i := range doc.Problems {
		a.Say("%s", a.Style(a.Err).Bad(kit.Safe(doc.Problems[i].Error())))
	}
	if doc.Dead > 0 {
		a.Say("%s that could not be handled; see `pfl-forge doctor`", render.Count(doc.Dead, "message"))
	}
	switch {
	case doc.lost != nil:
		a.Say("%s", a.Style(a.Err).Bad(kit.Safe(doc.lost.Error())))
	case doc.Counts.Waiting+doc.Counts.Failed > 0:
		a.Say("next: pfl-forge inbox")
	case len(all) == 0 && doc.Drafts == 0 && !t.Remote:
		a.Say(`next: pfl-forge create --title "what should change"`)
	case t.Owner && doc.Counts.Open+doc.Drafts > 0:
		a.Say("next: pfl-forge run")
	}
	return nil
}

// sayRunning says what agents do right now, an attempt a line.
func sayRunning(a *kit.App, list []document.Item) {
	n := 0
	for i := range list {
		n += len(list[i].Running)
	}
	if n == 0 {
		return
	}
	a.Say("%s", a.Style(a.Err).Bold(fmt.Sprintf("%d running now:", n)))
	for i := range list {
		for j := range list[i].Running {
			a.Say("  %s", &list[i].Running[j])
		}
	}
}

// sayMore says what a row has no room for: what is paused, what conflicts, and what
// failures mean.
// The meaning of a failure is said once, however many intents have it.
func sayMore(a *kit.App, list []document.Item) {
	for i := range list {
		for _, t := range list[i].Active {
			if t.Paused && !list[i].PausedWhole() {
				a.Say("  %s is %s", t.ID, document.HowToResume(&list[i], t.ID))
			}
			if text := t.WaitsFor(); text != "" {
				a.Say("  %s: %s", t.ID, text)
			}
		}
	}
	for _, line := range document.Clashes(list) {
		a.Say("  %s", line)
	}
	var told []document.Failure
	for i := range list {
		for _, f := range list[i].Failures {
			if !slices.Contains(told, f) {
				told = append(told, f)
				a.Say("%s", f)
			}
		}
	}
}

// shared fills in what is so of the whole project: whether it is paused, which
// accounts refuse calls, and its merge queue. A project without a decision yet
// has no state of its own, and then there is nothing to fill in.
func shared(ctx context.Context, t *target.Target, doc *Document) error {
	projects, err := t.Projects(ctx)
	for i := range projects {
		doc.Paused = doc.Paused || projects[i].Waiting == forge.WaitingPaused
	}
	doc.Accounts = document.Accounts(projects)
	document.Place(projects, doc.Intents)
	return err
}
