package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/workspace"
)

const auditHelp = `Ask for an audit: an agent reads the repository, or what is below a path, and writes
down what it finds in five areas: tests, design, conventions, debt, documentation. It
changes nothing. What it finds are observations, too, which reflections read.

With --report print what an audit found, the last one if there is no id. The same is in
.forge/reports/<id>.md.`

type auditFlags struct {
	report, dryRun bool
	question       string
	agent          string
	budget         float64
	format         render.Format
}

func (a *app) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit [<path>]",
		Short: "have the repository looked at, or print what was found",
		Long:  auditHelp,
		Example: "  pfl-forge audit\n  pfl-forge audit services/api --question \"is every handler tested?\"\n" +
			"  pfl-forge audit --report\n  pfl-forge audit --report audit-services-api",
		Args: between(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.report {
				return a.auditReport(cmd.Context(), args, f.format)
			}
			return a.audit(cmd.Context(), args, &f)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if !f.report {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.complete(isAudit, 1)(cmd, args, typed)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.report, "report", false, "print what an audit found, by its id")
	flags.StringVarP(&f.question, "question", "q", "", "what you want to know")
	flags.StringVar(&f.agent, "agent", "", "the back end")
	flags.Float64Var(&f.budget, "budget", 0, "most that agents may spend on it, in US `dollars`")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the intent and submit nothing")
	output(cmd, &f.format)
	cmd.MarkFlagsMutuallyExclusive("report", "question")
	cmd.MarkFlagsMutuallyExclusive("report", "dry-run")
	return cmd
}

func isAudit(s *forge.Summary) bool { return s.Type == forge.TypeAudit }

// audit submits an intent of type audit.
func (a *app) audit(ctx context.Context, args []string, f *auditFlags) error {
	open := a.decider
	if f.dryRun {
		open = a.reader
	}
	t, err := open(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	of := ""
	if len(args) > 0 {
		if of, err = a.auditPath(t, args[0]); err != nil {
			return err
		}
	}
	intent := auditOf(of, f)
	if err := a.prepare(ctx, t, intent); err != nil {
		return err
	}
	a.warnAuditor(ctx, t, intent)
	if f.dryRun {
		return a.printIntent(intent, f.format)
	}
	if err := a.submit(ctx, t, intent, f.format); err != nil {
		return err
	}
	a.say("then: pfl-forge audit --report %s", intent.ID)
	return nil
}

func auditOf(path string, f *auditFlags) *forge.Intent {
	title, body := "Audit the repository", "Audit the whole repository.\n"
	if path != "" {
		title, body = "Audit "+path, "Audit what is below "+path+".\n"
	}
	if f.question != "" {
		body += "\n" + f.question + "\n"
	}
	return &forge.Intent{
		Title: title, Body: body, Type: forge.TypeAudit, Source: forge.SourceHuman, Status: forge.StatusProposed,
		Agent: f.agent, BudgetUSD: f.budget, Origin: forge.Origin{System: originSystem, EventID: nuid.Next()}, CreatedAt: time.Now().UTC(),
	}
}

// auditPath returns a path of the repository from its root, with slashes.
func (a *app) auditPath(t *target, arg string) (string, error) {
	if t.repo == nil {
		return filepath.ToSlash(filepath.Clean(arg)), nil
	}
	abs, err := filepath.Abs(filepath.Join(a.dir, arg))
	if filepath.IsAbs(arg) {
		abs, err = filepath.Clean(arg), nil
	}
	if err != nil {
		return "", err
	}
	if target, evalErr := filepath.EvalSymlinks(abs); evalErr == nil {
		abs = target
	}
	if _, err := os.Stat(abs); err != nil {
		return "", fmt.Errorf("%s: no such file or folder", arg)
	}
	rel, err := filepath.Rel(t.repo.Root, abs)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is not in the repository %s", arg, t.repo.Root)
	}
	if rel == "." {
		return "", nil
	}
	return filepath.ToSlash(rel), nil
}

// audited is what an audit found, as programs read it.
type audited struct {
	Intent  forge.IntentID `json:"intent"  yaml:"intent"`
	Title   string         `json:"title"   yaml:"title"`
	Status  forge.Status   `json:"status"  yaml:"status"`
	Summary string         `json:"summary" yaml:"summary"`
	Areas   []auditedArea  `json:"areas"   yaml:"areas"`
}

type auditedArea struct {
	Name     string         `json:"name"     yaml:"name"`
	Summary  string         `json:"summary"  yaml:"summary"`
	Findings []auditFinding `json:"findings" yaml:"findings"`
}

type auditFinding struct {
	Title    string     `json:"title"              yaml:"title"`
	Severity forge.Risk `json:"severity"           yaml:"severity"`
	Detail   string     `json:"detail"             yaml:"detail"`
	Evidence []string   `json:"evidence,omitempty" yaml:"evidence,omitempty"`
}

func auditedOf(v *forge.View) audited {
	doc := audited{Intent: v.Intent.ID, Title: v.Intent.Title, Status: v.Summary.Status, Summary: v.Audit.Summary, Areas: []auditedArea{}}
	for _, area := range v.Audit.Areas {
		out := auditedArea{Name: area.Name, Summary: area.Summary, Findings: []auditFinding{}}
		for _, f := range area.Findings {
			found := auditFinding{Title: f.Title, Severity: f.Severity, Detail: f.Detail}
			for _, e := range f.Evidence {
				found.Evidence = append(found.Evidence, string(e.Type)+": "+e.Ref)
			}
			out.Findings = append(out.Findings, found)
		}
		doc.Areas = append(doc.Areas, out)
	}
	return doc
}

// auditReport prints what an audit found.
func (a *app) auditReport(ctx context.Context, args []string, format render.Format) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	id, err := t.chooseAudit(ctx, args)
	if err != nil {
		return err
	}
	v, err := t.view(ctx, id)
	switch {
	case err != nil:
		return err
	case v.Intent.Type != forge.TypeAudit:
		return fmt.Errorf("%s is no audit; `pfl-forge show %s` shows it", id, id)
	case v.Audit == nil:
		return fmt.Errorf("%s has found nothing yet, it is %s; `pfl-forge show %s` says how far it is", id, v.Summary.Status, id)
	case format.Data():
		return format.Write(a.out, auditedOf(v))
	case format == render.Name:
		fmt.Fprintln(a.out, id)
		return nil
	}
	fmt.Fprintln(a.out, safe(string(workspace.Report(&v.Intent, v.Audit))))
	return nil
}

// chooseAudit returns the audit that is named, or the last one that has a report.
func (t *target) chooseAudit(ctx context.Context, args []string) (forge.IntentID, error) {
	if len(args) > 0 {
		id, err := forge.ParseIntentID(args[0])
		if err != nil {
			return "", usageError{err}
		}
		return id, nil
	}
	all, err := t.summaries(ctx)
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
		return "", errors.New("no audit is done yet; pfl-forge audit asks for one")
	}
	return last.Key.Intent, nil
}
