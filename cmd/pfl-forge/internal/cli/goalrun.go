package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/goalfile"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
)

const goalRunHelp = `Work on a goal until every criterion is met, or its iterations are used up, and show what
happens. What else can go on here goes on meanwhile; the command ends when the goal can go
on no more. With --server it asks an organisation's pfl-forge for it, and follows.

The goal is a file, task.yaml in the repository's folder if none is named and - for standard
input, or a text with --criterion, once for each.

Exit codes: 0 every criterion is met, 1 usage or internal error, 2 the iterations are used
up, or it ended with an error or was cancelled, 3 it waits for a person, 130 interrupted.`

// goalFlags is what a person says about a goal.
type goalFlags struct {
	criteria       []string
	maxIterations  int
	model          string
	id, agent      string
	risk           string
	budget         float64
	detach, dryRun bool
	format         render.Format
}

func (a *app) goalRunCommand() *cobra.Command {
	var f goalFlags
	cmd := &cobra.Command{
		Use:   "run [<task.yaml> | <text> --criterion <what holds in the end>...]",
		Short: "work on a goal until every criterion is met",
		Long:  goalRunHelp,
		Example: `  pfl-forge goal run
  pfl-forge goal run goals/reset-link.yaml --max-iterations 5
  pfl-forge goal run "Add a reset link" --criterion "the login page links to the reset form" --criterion "a test covers an unknown address"`,
		Args: between(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("max-iterations") && (f.maxIterations < 1 || f.maxIterations > forge.MaxIterations) {
				return usageError{fmt.Errorf("--max-iterations: is %d; it can be 1 to %d", f.maxIterations, forge.MaxIterations)}
			}
			return a.goalRun(cmd.Context(), args, &f)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.criteria, "criterion", nil, "`what` must hold in the end, for a text; may be repeated")
	flags.IntVar(&f.maxIterations, "max-iterations", 0, "most iterations, 1 to 100; that of the file, or 10, if left out")
	flags.StringVar(&f.model, "model", "", "of the agent that works on it; the project's if left out")
	flags.StringVar(&f.id, "id", "", "of the goal; made of the text's first line if left out")
	flags.StringVar(&f.agent, "agent", "", "the back end: "+strings.Join(config.Agents(), ", ")+", or one of the project's own")
	flags.StringVar(&f.risk, "risk", "", "low, med or high; judged if left out")
	flags.Float64Var(&f.budget, "budget", 0, "most that agents may spend on it, in US `dollars`")
	flags.BoolVarP(&f.detach, "detach", "d", false, "ask for it, and leave the work to the next run or the one that goes on")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the intent and submit nothing")
	output(cmd, &f.format)
	cmd.MarkFlagsMutuallyExclusive("detach", "dry-run")
	_ = cmd.RegisterFlagCompletionFunc("risk", cobra.FixedCompletions([]string{"low", "med", "high"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("agent", cobra.FixedCompletions(config.Agents(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) goalRun(ctx context.Context, args []string, f *goalFlags) error {
	g, err := a.readGoal(args, f)
	if err != nil {
		return err
	}
	for _, n := range g.Notices {
		a.say("%s", safe(n))
	}
	intent, err := intentOfGoal(g, f)
	if err != nil {
		return err
	}
	open := a.decider
	if f.dryRun {
		open = a.reader
	}
	t, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { t.close() }()
	if err := a.prepare(ctx, t, intent); err != nil {
		return err
	}
	var base *local.Base
	if t.repo != nil && !t.remote {
		if base, err = a.goalBase(ctx, t, intent); err != nil {
			return err
		}
	}
	switch {
	case f.dryRun:
		return a.printIntent(intent, f.format)
	case f.detach:
		return a.submit(ctx, t, intent, f.format)
	}
	id, err := a.submitGoal(ctx, t, intent, f.id == "")
	if err != nil {
		return err
	}
	o, err := a.pursue(ctx, t, base, id)
	if err != nil {
		return err
	}
	if o.Interrupted {
		a.sayInterrupted(o)
		return exit(exitInterrupted)
	}
	return a.concludeGoal(ctx, id, f.format)
}

// submitGoal asks for a goal, unless one that asks for the same is under way: then,
// if reuse says so, that one is gone on with.
func (a *app) submitGoal(ctx context.Context, t *target, i *forge.Intent, reuse bool) (forge.IntentID, error) {
	if reuse {
		switch id, err := t.sameGoal(ctx, i); {
		case err != nil:
			return "", err
		case id != "":
			a.say("%s asks for the same and is under way: going on with it (--id asks for another one)", a.style(a.err).Bold(string(id)))
			return id, nil
		}
	}
	if _, err := t.store(ctx, i); err != nil {
		return "", err
	}
	a.say("%s: %s", a.style(a.err).Bold(string(i.ID)), safe(i.Title))
	return i.ID, nil
}

// sameGoal returns a goal under way with the same text and criteria; empty if there is
// none.
func (t *target) sameGoal(ctx context.Context, i *forge.Intent) (forge.IntentID, error) {
	list, err := t.goals(ctx)
	if err != nil {
		return "", err
	}
	for n := range list {
		s := &list[n]
		if s.Title != i.Title || s.Goal.Status != "" {
			continue
		}
		v, err := t.view(ctx, s.Key.Intent)
		if err != nil {
			return "", err
		}
		if v.Intent.Body == i.Body && slices.Equal(v.Intent.Criteria, i.Criteria) {
			return v.Intent.ID, nil
		}
	}
	return "", nil
}

// readGoal reads what a goal is about from a file, from standard input, or from flags.
func (a *app) readGoal(args []string, f *goalFlags) (*goalfile.Goal, error) {
	if len(f.criteria) > 0 {
		switch {
		case len(args) == 0:
			return nil, usageError{missing("the text that the criteria are about")}
		case slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(args[0])):
			return nil, usageError{fmt.Errorf("--criterion goes with a text; those of %s stand in it", args[0])}
		}
		return &goalfile.Goal{Task: args[0], Criteria: f.criteria}, nil
	}
	name := filepath.Join(a.dir, goalfile.Name)
	if len(args) > 0 {
		name = args[0]
	}
	if name == "-" {
		return parseGoal("standard input", a.in)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil && len(args) == 0:
		return nil, usageError{fmt.Errorf("there is no %s here; name a file, or give a text and --criterion", goalfile.Name)}
	case err != nil:
		return nil, usageError{fmt.Errorf("%s: no such file; a text needs --criterion, one at least", name)}
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file; use - to read from a pipe", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseGoal(name, file)
}

func parseGoal(name string, from io.Reader) (*goalfile.Goal, error) {
	data, err := io.ReadAll(io.LimitReader(from, goalfile.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return goalfile.Parse(name, data)
}

// intentOfGoal returns the intent that a goal is.
func intentOfGoal(g *goalfile.Goal, f *goalFlags) (*forge.Intent, error) {
	title := firstLine(g.Task)
	if title == "" {
		return nil, usageError{errors.New("the text is empty; say what is to be done")}
	}
	if f.maxIterations > 0 {
		g.Options.MaxIterations = f.maxIterations
	}
	if f.model != "" {
		g.Options.Model = f.model
		if e := g.Options.ValidateAgent(); e != nil {
			return nil, usageError{fmt.Errorf("--model: %s", e.Reason)}
		}
	}
	i := &forge.Intent{
		Title: title, Body: g.Task, Risk: forge.Risk(f.risk), Source: forge.SourceHuman, Status: forge.StatusProposed,
		Criteria: g.Criteria, Goal: &g.Options, Agent: f.agent, BudgetUSD: f.budget,
		Origin: forge.Origin{System: originSystem, EventID: nuid.Next()}, CreatedAt: time.Now().UTC(),
	}
	if f.id != "" {
		var err error
		if i.ID, err = forge.ParseIntentID(f.id); err != nil {
			return nil, usageError{fmt.Errorf("--id: %w", err)}
		}
	}
	return i, nil
}

// goalBase returns the configuration that a goal is worked on with, and refuses what it
// does not allow.
func (a *app) goalBase(ctx context.Context, t *target, i *forge.Intent) (*local.Base, error) {
	base, err := t.repo.Base(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.checkTools(i.Goal.Tools, base.Config.WorkerTools); err != nil {
		return nil, err
	}
	a.noticeConfig(t.repo, base)
	a.warnAgents(ctx, t, i, "a goal", "cannot reach a goal", forge.StepIntake, forge.StepExecute, forge.StepSummarize, forge.StepJudge)
	return base, nil
}

// checkTools says which tools of a goal the project does not allow, and refuses a goal
// that would have none.
func (a *app) checkTools(wanted, allowed []string) error {
	name := func(tool string) string {
		name, _, _ := strings.Cut(tool, "(")
		return name
	}
	left := len(wanted)
	for _, want := range wanted {
		if !slices.ContainsFunc(allowed, func(tool string) bool { return name(tool) == name(want) }) {
			a.say("claude_options.allowed_tools: %s has no effect: worker_tools in %s do not have it", safe(want), config.FileName)
			left--
		}
	}
	if len(wanted) > 0 && left == 0 {
		return fmt.Errorf("claude_options.allowed_tools: has none of worker_tools in %s, which are %s", config.FileName, strings.Join(allowed, ", "))
	}
	return nil
}

// pursue works on a goal, or shows who does, until it can go on no more.
func (a *app) pursue(ctx context.Context, t *target, base *local.Base, id forge.IntentID) (*local.Outcome, error) {
	if t.remote {
		live := a.live()
		defer live.Close()
		return local.Follow(ctx, t.bus, t.project, id, live, a.log())
	}
	t.close()
	t.close = func() {}
	return a.runLocal(ctx, t.repo, base, &runFlags{only: id})
}

// concludeGoal prints what came of a goal, and returns the exit code.
func (a *app) concludeGoal(ctx context.Context, id forge.IntentID, format render.Format) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	d, err := t.goal(ctx, string(id))
	if err != nil {
		return err
	}
	if format.Data() || format == render.Name {
		if err := a.printGoal(d, format); err != nil {
			return err
		}
		return goalOutcome(d)
	}
	a.printGoalHead(d)
	switch {
	case d.Waiting == forge.WaitingFailed:
		a.say("next: pfl-forge goal resume %s --with 'instructions', or pfl-forge goal status %s", id, id)
	case len(d.Commands) > 0:
		a.say("next: %s", d.Commands[0])
	}
	return goalOutcome(d)
}

// goalOutcome returns the error that stands for the exit code of a goal.
func goalOutcome(d *goalDoc) error {
	switch d.Status {
	case string(forge.LoopCompleted):
		return nil
	case goalWaiting, goalRunning: // at rest: something that it waits for waits for a person
		return exit(exitWaiting)
	}
	return exit(exitFailed)
}
