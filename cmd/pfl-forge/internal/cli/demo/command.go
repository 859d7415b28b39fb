package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/run"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/trusting"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Command returns the command demo. It needs git and nothing else: the changes are made by
// recipes, so no model is called and nothing is paid for.
func Command(a *kit.App) *cobra.Command {
	var dir string
	var format render.Format
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "run the whole pipeline on a small repository made for it",
		Long: `Create a small repository with recipes and drafts, run the whole pipeline on it, and
check that everything went as planned. The repository stays; two intents in it wait
for you.

Exit codes: 0 everything went as planned, 1 something did not, 130 interrupted.`,
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), a, dir, format) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the `folder` for the repository, which must be empty or not exist; default: a temporary one")
	kit.OutputFlag(cmd, &format)
	return cmd
}

// demo makes a repository, runs everything in it, and prints whether it went as planned.
//
// The repository is kept, and the commands that it prints at the end work there: it is the first
// look at pfl-forge that most people have. That not all went as planned is an error, so that the
// demo is a test of an installation as well.
func demo(ctx context.Context, a *kit.App, dir string, format render.Format) error {
	if a.Remote() {
		return kit.Usage(errors.New("the demo creates its own repository: omit --server and --context"))
	}
	var err error
	if dir == "" {
		if dir, err = os.MkdirTemp("", "pfl-forge-demo-"); err != nil {
			return err
		}
	}
	if dir, err = Create(ctx, dir); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	repo, err := local.OpenRepository(ctx, dir)
	if err != nil {
		return err
	}
	base, err := repo.Base(ctx)
	if err != nil {
		return err
	}
	if err := trusting.Made(a, repo, base.Config); err != nil {
		a.Say("later runs there will ask whether its recipes may run: %s", kit.Safe(err.Error()))
	}
	a.Say("a repository with %d drafts: %s\n", len(Intents()), dir)
	began := time.Now()
	o, err := run.Work(ctx, a, repo, base, &run.Options{NoJoin: true, Made: true})
	if err != nil {
		return err
	}
	if o.Interrupted {
		a.Say("interrupted; the repository is kept: %s", dir)
		return run.Outcome(o)
	}
	report, err := Examine(ctx, repo, a.Log())
	if err != nil {
		return err
	}
	doc := demoDocOf(dir, time.Since(began), report, a.Invocation())
	if format.Data() {
		err = format.Write(a.Out, doc)
	} else {
		printDemo(a, doc)
	}
	if err == nil && !doc.OK {
		err = fmt.Errorf("not everything went as planned; the repository is kept: %s", dir)
	}
	return err
}

// printDemo prints the outcome of the demo for a person: each scene with whether it went as
// planned, the commits, the two decisions that wait, and commands that can be pasted.
func printDemo(a *kit.App, doc *demoDoc) {
	style := a.Style(a.Out)
	fmt.Fprintf(a.Out, "\nWhat it showed, in %.1f seconds:\n\n", doc.Seconds)
	for _, s := range doc.Scenes {
		mark := style.Good("ok  ")
		if len(s.Differs) > 0 {
			mark = style.Bad("FAIL")
		}
		fmt.Fprintf(a.Out, "  %s  %s  %s\n", mark, style.Bold(fmt.Sprintf("%-18s", s.Name)), kit.Safe(s.Shows))
		if s.Fact != "" {
			fmt.Fprintf(a.Out, "                            %s\n", style.Faint(kit.Safe(s.Fact)))
		}
		for _, d := range s.Differs {
			fmt.Fprintf(a.Out, "                            %s\n", style.Bad(kit.Safe(d)))
		}
	}
	fmt.Fprintf(a.Out, "\nmain now, git log --oneline:\n\n")
	for _, c := range doc.Commits {
		fmt.Fprintf(a.Out, "  %s %s\n", style.Faint(render.ShortCommit(string(c.Commit))), kit.Safe(c.Subject))
	}
	fmt.Fprintf(a.Out, "\nWhat waits for you:\n\n")
	for _, w := range doc.Waiting {
		fmt.Fprintf(a.Out, "  %s  %s\n    %s\n", style.Bold(string(w.ID)), style.Attention(w.Why), w.Command)
	}
	fmt.Fprintf(a.Out, "\nThen:\n\n")
	for _, c := range doc.Next {
		fmt.Fprintf(a.Out, "    %s\n", c)
	}
	fmt.Fprintf(a.Out, "\nThe repository is kept: %s\n\n", doc.Dir)
	for _, l := range demoFiles {
		fmt.Fprintf(a.Out, "  %-36s %s\n", l.path, style.Faint(l.what))
	}
}

// demoFiles names the files in which the outcome can be looked at, for the end of the text. Their
// names are those of the demo's own intents.
var demoFiles = []struct{ path, what string }{
	{"pfl-forge.yaml", "the recipes, and how a change is verified"},
	{".forge/intent-drafts/imported/", "the drafts that were imported"},
	{".forge/intents/<id>.yaml", "one file per intent: edit answers or the status here"},
	{".forge/reviews/glossary-001-1.yaml", "the review that rejected"},
	{".forge/knowledge/history/", "every step of every run, and the rules that changed its flow"},
	{".forge/state.yaml", "an overview for scripts"},
}
