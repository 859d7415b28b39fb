package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/demo"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/git"
)

func (a *app) demoCommand() *cobra.Command {
	var dir string
	var format render.Format
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "run the whole pipeline on a small repository made for it",
		Long: `Make a small repository with recipes and drafts, run the whole pipeline on it, and
look whether everything went as planned. The repository stays; two intents in it
wait for you.

Exit codes: 0 everything went as planned, 1 something did not, 130 interrupted.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), dir, format) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the `folder` for the repository, which must be empty or not exist; a temporary one if left out")
	output(cmd, &format)
	return cmd
}

func (a *app) demo(ctx context.Context, dir string, format render.Format) error {
	if a.remote() {
		return usageError{errors.New("the demo makes a repository of its own: leave out --server and --context")}
	}
	var err error
	if dir == "" {
		if dir, err = os.MkdirTemp("", "pfl-forge-demo-"); err != nil {
			return err
		}
	}
	if dir, err = demo.Create(ctx, dir); err != nil {
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
	a.say("a repository with %d drafts: %s\n", len(demo.Intents()), dir)
	began := time.Now()
	o, err := a.runLocal(ctx, repo, base, &runFlags{noJoin: true})
	if err != nil {
		return err
	}
	if o.Interrupted {
		a.say("interrupted; the repository stays: %s", dir)
		return outcome(o)
	}
	report, err := demo.Examine(ctx, repo, a.log())
	if err != nil {
		return err
	}
	doc := demoDocOf(dir, time.Since(began), report, a.invocation())
	if format.Data() {
		err = format.Write(a.out, doc)
	} else {
		a.printDemo(doc)
	}
	if err == nil && !doc.OK {
		err = fmt.Errorf("not everything went as planned; the repository stays: %s", dir)
	}
	return err
}

// demoDoc is what the demo came to, as programs read it.
type demoDoc struct {
	Dir     string        `json:"dir"     yaml:"dir"`
	OK      bool          `json:"ok"      yaml:"ok"`
	Seconds float64       `json:"seconds" yaml:"seconds"`
	Scenes  []demoScene   `json:"scenes"  yaml:"scenes"`
	Commits []demoCommit  `json:"commits" yaml:"commits"` // of main, newest first
	Waiting []demoWaiting `json:"waiting" yaml:"waiting"`
	Next    []string      `json:"next"    yaml:"next"` // commands, when those of waiting are done
}

type demoScene struct {
	Name    string   `json:"name"              yaml:"name"`
	Shows   string   `json:"shows"             yaml:"shows"`
	Fact    string   `json:"fact"              yaml:"fact"`
	Differs []string `json:"differs,omitempty" yaml:"differs,omitempty"`
}

type demoCommit struct {
	Commit  git.OID `json:"commit"  yaml:"commit"`
	Subject string  `json:"subject" yaml:"subject"`
}

type demoWaiting struct {
	ID      forge.IntentID `json:"id"      yaml:"id"`
	Why     string         `json:"why"     yaml:"why"`
	Command string         `json:"command" yaml:"command"` // one thing that a person can do
}

func demoDocOf(dir string, took time.Duration, r *demo.Report, by invocation) *demoDoc {
	doc := &demoDoc{Dir: dir, OK: r.OK(), Seconds: float64(took.Milliseconds()) / 1000, Waiting: []demoWaiting{}}
	for _, s := range r.Scenes {
		doc.Scenes = append(doc.Scenes, demoScene{s.Name, s.Shows, s.Fact, s.Differs})
	}
	for _, l := range r.Log {
		doc.Commits = append(doc.Commits, demoCommit{l.Commit, l.Subject})
	}
	for i := range r.Views {
		if v := &r.Views[i]; v.Summary.Waiting != "" {
			doc.Waiting = append(doc.Waiting, demoWaiting{v.Intent.ID, demoWhy(v), by.command(dir, demoDecision(v)...)})
		}
	}
	doc.Next = []string{by.command(dir, "run"), by.command(dir, "status")}
	return doc
}

// demoDecision returns the command by which an intent of the demo goes on.
func demoDecision(v *forge.View) []string {
	id := string(v.Intent.ID)
	switch v.Summary.Waiting {
	case forge.WaitingApproval:
		return []string{"approve", id, "--plan", v.Summary.Plan}
	case forge.WaitingClarification:
		for n, c := range v.Intent.Clarifications {
			if c.Answer == nil && len(c.SuggestedAnswers) > 0 {
				return []string{"answer", id, fmt.Sprint(n + 1), c.SuggestedAnswers[0]}
			}
		}
	case forge.WaitingDirty, forge.WaitingFailed, forge.WaitingBudget, forge.WaitingPaused:
	}
	return []string{"show", id}
}

func demoWhy(v *forge.View) string {
	for _, c := range v.Intent.Clarifications {
		if c.Answer == nil {
			return safe(c.Question)
		}
	}
	return safe(render.Doing(&v.Summary))
}

func (a *app) printDemo(doc *demoDoc) {
	style := a.style(a.out)
	fmt.Fprintf(a.out, "\nWhat it showed, in %.1f seconds:\n\n", doc.Seconds)
	for _, s := range doc.Scenes {
		mark := style.Good("ok  ")
		if len(s.Differs) > 0 {
			mark = style.Bad("FAIL")
		}
		fmt.Fprintf(a.out, "  %s  %s  %s\n", mark, style.Bold(fmt.Sprintf("%-18s", s.Name)), safe(s.Shows))
		if s.Fact != "" {
			fmt.Fprintf(a.out, "                            %s\n", style.Faint(safe(s.Fact)))
		}
		for _, d := range s.Differs {
			fmt.Fprintf(a.out, "                            %s\n", style.Bad(safe(d)))
		}
	}
	fmt.Fprintf(a.out, "\nmain now, git log --oneline:\n\n")
	for _, c := range doc.Commits {
		fmt.Fprintf(a.out, "  %s %s\n", style.Faint(render.ShortCommit(string(c.Commit))), safe(c.Subject))
	}
	fmt.Fprintf(a.out, "\nWhat waits for you:\n\n")
	for _, w := range doc.Waiting {
		fmt.Fprintf(a.out, "  %s  %s\n    %s\n", style.Bold(string(w.ID)), style.Attention(w.Why), w.Command)
	}
	fmt.Fprintf(a.out, "\nThen:\n\n")
	for _, c := range doc.Next {
		fmt.Fprintf(a.out, "    %s\n", c)
	}
	fmt.Fprintf(a.out, "\nThe repository stays: %s\n\n", doc.Dir)
	for _, l := range demoFiles {
		fmt.Fprintf(a.out, "  %-36s %s\n", l.path, style.Faint(l.what))
	}
}

// demoFiles says where to look.
var demoFiles = []struct{ path, what string }{
	{"pfl-forge.yaml", "the recipes, and how a change is verified"},
	{".forge/intent-drafts/imported/", "what was asked for"},
	{".forge/intents/<id>.yaml", "every intent: edit an answer or the status here, it counts"},
	{".forge/reviews/glossary-001-1.yaml", "the review that rejected"},
	{".forge/knowledge/history/", "every step of every run, and the rules that changed its course"},
	{".forge/state.yaml", "everything at a glance, for scripts"},
}
