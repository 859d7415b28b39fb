package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/workspace"
)

// statusDoc is the answer of status, as programs read it.
type statusDoc struct {
	Project  forge.ProjectID     `json:"project"            yaml:"project"`
	Paused   bool                `json:"paused,omitempty"   yaml:"paused,omitempty"` // as a whole
	Intents  []item              `json:"intents"            yaml:"intents"`
	Counts   render.Counts       `json:"counts"             yaml:"counts"`
	Drafts   int                 `json:"drafts"             yaml:"drafts"`       // that wait for the next run
	Dead     int                 `json:"dead_letters"       yaml:"dead_letters"` // messages that nobody could handle
	Problems []workspace.Problem `json:"problems,omitempty" yaml:"problems,omitempty"`
}

type statusFlags struct {
	format render.Format
	watch  bool
}

func (a *app) statusCommand() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:     "status",
		Aliases: []string{"ls", "list"},
		Short:   "list the intents and how far they are",
		Example: "  pfl-forge status\n  pfl-forge status --watch\n  pfl-forge status -o json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context(), &f) },
	}
	output(cmd, &f.format)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on and show what happens, until nothing is left to do")
	return cmd
}

func (a *app) status(ctx context.Context, f *statusFlags) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	if f.watch {
		return a.statusWatch(ctx, t, f)
	}
	all, err := t.summaries(ctx)
	if err != nil {
		return err
	}
	dead, err := t.dead(ctx)
	if err != nil {
		return err
	}
	all, depths := render.Tree(all)
	doc := statusDoc{Project: t.project, Intents: items(all), Counts: render.CountIntents(all), Dead: len(dead)}
	if doc.Paused, err = t.paused(ctx); err != nil {
		return err
	}
	if t.bus != nil && !t.owner {
		if err := t.running(ctx, all, doc.Intents); err != nil {
			a.say("cannot tell what running attempts have used: %v", err)
		}
	}
	if t.repo != nil && !t.remote {
		doc.Drafts = t.repo.Drafts()
		if doc.Problems, err = t.repo.Problems(); err != nil {
			a.say("cannot read what is wrong with your files: %v", err)
		}
	}
	switch {
	case f.format.Data():
		return f.format.Write(a.out, doc)
	case f.format == render.Name:
		for i := range all {
			fmt.Fprintln(a.out, all[i].Key.Intent)
		}
		return nil
	}
	return a.statusTable(t, f, &doc, all, depths)
}

// dead returns the messages that nobody could handle.
func (t *target) dead(ctx context.Context) ([]bus.DeadLetter, error) {
	if t.bus == nil {
		return nil, nil
	}
	return t.bus.Dead(ctx)
}

func (a *app) statusTable(t *target, f *statusFlags, doc *statusDoc, all []forge.Summary, depths []int) error {
	if len(all) == 0 {
		a.say("no intents yet")
		if t.repo != nil && !t.remote && t.repo.Forgotten() {
			a.say("%s", a.style(a.err).Bad("there are intents in .forge/intents that the store knows nothing of: .forge/nats was removed; ask for them again"))
		}
	} else if err := a.table(all, depths, f.format == render.Wide); err != nil {
		return err
	}
	if len(all) > 0 {
		a.say("%s", render.Tally(all))
	}
	if doc.Paused {
		a.say("%s", a.style(a.err).Attention("the project is paused; next: pfl-forge resume --all"))
	}
	a.sayMore(doc.Intents)
	if doc.Drafts > 0 {
		a.say("%s in .forge/intent-drafts", render.Count(doc.Drafts, "draft"))
	}
	for i := range doc.Problems {
		a.say("%s", a.style(a.err).Bad(safe(doc.Problems[i].Error())))
	}
	if doc.Dead > 0 {
		a.say("%s that nobody could handle: `pfl-forge doctor` shows them", render.Count(doc.Dead, "message"))
	}
	switch {
	case doc.Counts.Waiting+doc.Counts.Failed > 0:
		a.say("next: pfl-forge inbox")
	case len(all) == 0 && doc.Drafts == 0 && !t.remote:
		a.say(`next: pfl-forge create --title "what should change"`)
	case t.owner && doc.Counts.Open+doc.Drafts > 0:
		a.say("next: pfl-forge run")
	}
	return nil
}

// sayMore tells what a row has no room for: what runs, and what failures mean.
func (a *app) sayMore(list []item) {
	for i := range list {
		for j := range list[i].Running {
			a.say("  %s", &list[i].Running[j])
		}
		for _, t := range list[i].Active {
			if t.Paused && !list[i].pausedWhole() {
				a.say("  %s is %s", t.ID, howToResume(&list[i], t.ID))
			}
			for _, o := range t.Overlaps {
				a.say("  %s does not merge with %s as it is: %s", t.ID, o.Task, term.Line(strings.Join(o.Files, ", ")))
			}
		}
	}
	var told []failure
	for i := range list {
		for _, f := range list[i].Failures {
			if !slices.Contains(told, f) {
				told = append(told, f)
				a.say("%s", f)
			}
		}
	}
}

// paused reports whether the whole project is.
func (t *target) paused(ctx context.Context) (bool, error) {
	if t.bus == nil {
		return false, nil
	}
	lanes, err := t.bus.LaneSummaries(ctx, t.project)
	for i := range lanes {
		if lanes[i].Waiting == forge.WaitingPaused {
			return true, err
		}
	}
	return false, err
}

// table prints intents. On a terminal those that are parts of others are indented, if
// there are depths.
func (a *app) table(all []forge.Summary, depths []int, wide bool) error {
	columns := render.Columns{Header: []string{"ID", "STATUS", "TASKS", "AGE", "NOW"}, Shrink: 4}
	if wide {
		columns.Header = append(columns.Header, "RISK", "TYPE", "SOURCE", "PARENT", "RUN", "TOKENS", "COST", "TITLE")
	}
	now := time.Now()
	for i := range all {
		s := &all[i]
		tasks := ""
		if s.TaskCount > 0 {
			tasks = fmt.Sprintf("%d/%d", s.TasksDone, s.TaskCount)
		}
		if len(s.Children) > 0 {
			tasks = partsDone(s)
		}
		id := string(s.Key.Intent)
		if i < len(depths) && width(a.out) > 0 {
			id = strings.Repeat("- ", depths[i]) + id
		}
		row := []string{id, string(s.Status), tasks, render.Age(now.Sub(s.CreatedAt)), doing(s)}
		if wide {
			row = append(row, string(s.Risk), s.Type, string(s.Source), string(s.Parent), fmt.Sprint(s.Run),
				render.Tokens(s.Usage.InputTokens+s.Usage.OutputTokens), render.Cost(s.Usage.CostUSD), s.Title)
		}
		columns.Add(row...)
	}
	return columns.Write(a.out, width(a.out), a.style(a.out))
}

// partsDone says how many of an intent's parts are done.
func partsDone(s *forge.Summary) string {
	done := 0
	for _, c := range s.Children {
		if c.Status == forge.StatusDone {
			done++
		}
	}
	return fmt.Sprintf("%d/%d", done, len(s.Children))
}

// doing says what goes on with an intent, or else what it is about.
func doing(s *forge.Summary) string {
	if text := render.Doing(s); text != "" {
		return text
	}
	return s.Title
}
