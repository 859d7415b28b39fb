// Package audit is the command that asks for an audit, and that prints the
// findings of audits.
//
// An audit is an intent of its own type: it is submitted as package create does
// it, and worked on by a run like any other. Its findings are in its journal,
// so the report of an old one can be printed at any time.
package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/create"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/forgedir/records"
)

const auditHelp = `Audit the repository: an agent reads it, or what is below a path, and reports its
findings in five areas: tests, design, conventions, debt, documentation. It changes
nothing. Its findings are also observations, which reflections read.

With --report, print the findings of an audit, by default the last one. They are also in
.forge/reports/<id>.md.`

// flags are the flags of audit. report excludes the flags about a new audit: it submits nothing.
type flags struct {
	// dryRun prints the intent and opens the project for reading alone.
	report, dryRun bool
	// question becomes the last paragraph of the intent's body; empty for an audit of everything.
	question string
	// agent and budget are as of create: the name of a back end, and US dollars for all calls of
	// the intent. Empty and 0 leave them to the project.
	agent  string
	budget float64
	format render.Format
}

// Command returns the command audit. Its argument is a path for a new audit, and completed as a
// file; with --report it is the id of an audit, and completed as such.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "audit [<path>]",
		Short: "audit the repository, or print the last audit",
		Long:  auditHelp,
		Example: "  pfl-forge audit\n  pfl-forge audit services/api --question \"is every handler tested?\"\n" +
			"  pfl-forge audit --report\n  pfl-forge audit --report audit-services-api",
		Args: kit.Between(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.report {
				return auditReport(cmd.Context(), a, args, f.format)
			}
			return audit(cmd.Context(), a, args, &f)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if !f.report {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return complete.Intents(a, isAudit, 1)(cmd, args, typed)
		},
	}
	set := cmd.Flags()
	set.BoolVar(&f.report, "report", false, "print the findings of an audit, by its id")
	set.StringVarP(&f.question, "question", "q", "", "a question for the audit to answer")
	set.StringVar(&f.agent, "agent", "", "the agent back end")
	set.Float64Var(&f.budget, "budget", 0, "spending limit for its agents, in US `dollars`")
	set.BoolVar(&f.dryRun, "dry-run", false, "print the intent and submit nothing")
	kit.OutputFlag(cmd, &f.format)
	cmd.MarkFlagsMutuallyExclusive("report", "question")
	cmd.MarkFlagsMutuallyExclusive("report", "dry-run")
	return cmd
}

// isAudit reports whether an intent is an audit.
func isAudit(s *forge.Summary) bool { return s.Type == forge.TypeAudit }

// audit submits an audit, and prints the command that shows its findings once it is done. It does
// not wait for that, and needs no runner to be up. That an agent cannot audit here is a warning
// and no error: it may be there when the step runs.
func audit(ctx context.Context, a *kit.App, args []string, f *flags) error {
	t, err := target.Open(ctx, a, f.dryRun)
	if err != nil {
		return err
	}
	defer t.Close()
	of := ""
	if len(args) > 0 {
		if of, err = auditPath(a, t, args[0]); err != nil {
			return err
		}
	}
	intent := auditOf(of, f)
	if err := create.Prepare(ctx, t, intent); err != nil {
		return err
	}
	doctor.WarnAgents(ctx, a, t, intent, "an audit", "cannot audit", forge.StepAudit)
	if f.dryRun {
		return create.Print(a, intent, f.format)
	}
	if err := create.Submit(ctx, a, t, intent, f.format); err != nil {
		return err
	}
	a.Say("then: pfl-forge audit --report %s", intent.ID)
	return nil
}

// auditOf returns the intent of an audit of what is below a path, or of everything if that is
// empty. The title is of the path alone, so that the id made of it says what was audited. The
// question is in the body, where the agent reads it.
func auditOf(path string, f *flags) *forge.Intent {
	title, body := "Audit the repository", "Audit the whole repository.\n"
	if path != "" {
		title, body = "Audit "+path, "Audit what is below "+path+".\n"
	}
	if f.question != "" {
		body += "\n" + f.question + "\n"
	}
	i := create.New(title, body)
	i.Type, i.Agent, i.BudgetUSD = forge.TypeAudit, f.agent, f.budget
	return i
}

// auditPath returns a path as the agent of an audit reads it: from the root of the repository and
// with slashes; empty for the root itself. An argument is meant from the folder that the command
// runs in.
//
// A path that is not there, or that leads out of the repository, is an error, also through a
// symbolic link. Without a repository at hand, which only --server allows, nothing of that can be
// checked, and the path is taken as it is: the agent finds out.
func auditPath(a *kit.App, t *target.Target, arg string) (string, error) {
	if t.Repo == nil {
		return filepath.ToSlash(filepath.Clean(arg)), nil
	}
	abs, err := filepath.Abs(filepath.Join(a.Dir, arg))
	if filepath.IsAbs(arg) {
		abs, err = filepath.Clean(arg), nil
	}
	if err != nil {
		return "", err
	}
	// The root is without links, so the path has to be for the two to be compared.
	if target, evalErr := filepath.EvalSymlinks(abs); evalErr == nil {
		abs = target
	}
	if _, err := os.Stat(abs); err != nil {
		return "", fmt.Errorf("%s: no such file or folder", arg)
	}
	rel, err := filepath.Rel(t.Repo.Root, abs)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is not in the repository %s", arg, t.Repo.Root)
	}
	if rel == "." {
		return "", nil
	}
	return filepath.ToSlash(rel), nil
}

// auditReport prints the findings of an audit, as .forge/reports has them. An intent of another
// type and an audit without findings are errors that name the command which says more.
func auditReport(ctx context.Context, a *kit.App, args []string, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	id, err := chooseAudit(ctx, t, args)
	if err != nil {
		return err
	}
	v, err := t.View(ctx, id)
	switch {
	case err != nil:
		return err
	case v.Intent.Type != forge.TypeAudit:
		return fmt.Errorf("%s is not an audit; see `pfl-forge show %s`", id, id)
	case v.Audit == nil:
		return fmt.Errorf("%s has no findings yet, it is %s; see `pfl-forge show %s`", id, v.Summary.Status, id)
	}
	return a.Print(format, document.AuditOf(v), []string{string(id)}, func() error {
		fmt.Fprintln(a.Out, kit.Safe(string(records.Report(&v.Intent, v.Audit))))
		return nil
	})
}

// chooseAudit returns the id of the audit that an argument names, or else of the last one that is
// done. The last one is that whose end was decided last, not that which was asked for last.
func chooseAudit(ctx context.Context, t *target.Target, args []string) (forge.IntentID, error) {
	if len(args) > 0 {
		id, err := forge.ParseIntentID(args[0])
		if err != nil {
			return "", kit.Usage(err)
		}
		return id, nil
	}
	all, err := t.Summaries(ctx)
	if err != nil {
		return "", err
	}
	var last *forge.Summary
	for i := range all {
		if s := &all[i]; isAudit(s) && s.Status == forge.StatusDone && (last == nil || s.UpdatedAt.After(last.UpdatedAt)) {
			last = s
		}
	}
	if last == nil {
		return "", errors.New("no audit has finished yet; start one with `pfl-forge audit`")
	}
	return last.Key.Intent, nil
}
