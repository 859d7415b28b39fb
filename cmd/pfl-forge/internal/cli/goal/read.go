package goal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/create"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/run"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/goalfile"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/document"
)

// readGoal returns the goal that the arguments name: a file, standard input, or a text with
// criteria of flags.
//
// Which of them it is follows from the flags and not from the looks of the argument:
// with --criterion or --check it is a text, and without them a file. So a text
// without criteria is an error, and is never taken for a goal that is met at once.
// Without an argument it is task.yaml in the folder that the command is about.
func readGoal(a *kit.App, args []string, f *runFlags) (*goalfile.Goal, error) {
	if len(f.criteria)+len(f.fields.Checks()) > 0 {
		switch {
		case len(args) == 0:
			return nil, kit.Usage(kit.Missing("the text"))
		case slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(args[0])):
			return nil, kit.Usage(fmt.Errorf("--criterion and --check need a text; %s has its own criteria", args[0]))
		}
		g := &goalfile.Goal{Task: args[0]}
		g.Criteria, g.Checks = document.WithChecks(f.criteria, f.fields.Checks())
		return g, nil
	}
	name := filepath.Join(a.Dir, goalfile.Name)
	if len(args) > 0 {
		name = args[0]
	}
	if name == "-" {
		return parseGoal("standard input", a.In)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil && len(args) == 0:
		return nil, kit.Usage(fmt.Errorf("there is no %s here; give a file, or a text and --criterion or --check", goalfile.Name))
	case err != nil:
		return nil, kit.Usage(fmt.Errorf("%s: no such file; a text needs at least one --criterion or --check", name))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file; use - to read from a pipe", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseGoal(name, file)
}

// parseGoal reads the file of a goal. name stands for it in errors. At most
// goalfile.MaxBytes are taken, and one byte more so that Parse can tell.
func parseGoal(name string, from io.Reader) (*goalfile.Goal, error) {
	data, err := io.ReadAll(io.LimitReader(from, goalfile.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return goalfile.Parse(name, data)
}

// intentOf returns the intent that a goal is, with what the flags add. A flag counts more
// than the same option of the file. The id is empty unless --id was given; create.Prepare
// makes one. Errors are mistakes in the command line, and name the flag where it was one.
func intentOf(g *goalfile.Goal, f *runFlags) (*forge.Intent, error) {
	title := create.FirstLine(g.Task)
	if title == "" {
		return nil, kit.Usage(errors.New("the text is empty; describe the task"))
	}
	if f.maxIterations > 0 {
		g.Options.MaxIterations = f.maxIterations
	}
	if f.model != "" {
		g.Options.Model = f.model
		if e := g.Options.ValidateAgent(); e != nil {
			return nil, kit.Usage(fmt.Errorf("--model: %s", e.Reason))
		}
	}
	said, err := f.fields.Intent()
	if err != nil {
		return nil, err
	}
	i := create.New(title, g.Task)
	i.Risk, i.Criteria, i.Checks, i.Goal, i.Agent, i.BudgetUSD = said.Risk, g.Criteria, g.Checks, &g.Options, said.Agent, said.BudgetUSD
	if f.id != "" {
		if i.ID, err = forge.ParseIntentID(f.id); err != nil {
			return nil, kit.Usage(fmt.Errorf("--id: %w", err))
		}
	}
	return i, nil
}

// goalBase returns the configuration that a goal is worked on with, and refuses what it does
// not allow. Tools that the project does not allow are an error here, before anything is
// stored; agents that do not work here are a warning. The target is that of a repository.
func goalBase(ctx context.Context, a *kit.App, t *target.Target, i *forge.Intent) (*local.Base, error) {
	base, err := t.Repo.Base(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkTools(a, i.Goal.Tools, base.Config.WorkerTools); err != nil {
		return nil, err
	}
	run.NoticeConfig(a, t.Repo, base)
	doctor.WarnAgents(ctx, a, t, i, "a goal", "cannot reach a goal", forge.StepIntake, forge.StepExecute, forge.StepSummarize, forge.StepJudge)
	return base, nil
}

// checkTools says which tools of a goal the project does not allow, and refuses a goal
// that would have none. Names are compared without the patterns in parentheses, such as
// Bash(go test *). Without wanted tools the project's hold, and there is nothing to check.
func checkTools(a *kit.App, wanted, allowed []string) error {
	name := func(tool string) string {
		name, _, _ := strings.Cut(tool, "(")
		return name
	}
	left := len(wanted)
	for _, want := range wanted {
		if !slices.ContainsFunc(allowed, func(tool string) bool { return name(tool) == name(want) }) {
			a.Say("claude_options.allowed_tools: %s has no effect: it is not in worker_tools of %s", kit.Safe(want), config.FileName)
			left--
		}
	}
	if len(wanted) > 0 && left == 0 {
		return fmt.Errorf("claude_options.allowed_tools: has none of the worker_tools of %s (%s)", config.FileName, strings.Join(allowed, ", "))
	}
	return nil
}
