package show

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/costs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	model "github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/git"
)

// maxDiff bounds the patch that show prints, in bytes.
const maxDiff = 256 << 10

// Task is everything about a task, as programs read it.
type Task struct {
	// Product is its newest change.
	model.Product `yaml:",inline"`

	ID     forge.TaskID     `json:"id"             yaml:"id"`
	Title  string           `json:"title"          yaml:"title"`
	Status forge.TaskStatus `json:"status"         yaml:"status"`
	Plan   string           `json:"plan,omitempty" yaml:"plan,omitempty"`

	// Requirements are answered by each review, by their numbers, which count from 1.
	Requirements []string `json:"requirements,omitempty" yaml:"requirements,omitempty"`

	// Item is the item of a recipe's list that the task is about, such as a file.
	Item      string         `json:"item,omitempty"       yaml:"item,omitempty"`
	Files     []string       `json:"files,omitempty"      yaml:"files,omitempty"`
	DependsOn []forge.TaskID `json:"depends_on,omitempty" yaml:"depends_on,omitempty"`
	Attempts  int            `json:"attempts"             yaml:"attempts"`
	Paused    bool           `json:"paused,omitempty"     yaml:"paused,omitempty"`

	// Failure is why it failed; Why explains the reason that Failure names, if it names one.
	Failure string            `json:"failure,omitempty" yaml:"failure,omitempty"`
	Why     *document.Failure `json:"why,omitempty"     yaml:"why,omitempty"` // what Failure means

	// Checks, History and Diff are set only of a task that is shown alone.
	// Checks ran on its newest change.
	Checks  []document.Check      `json:"checks,omitempty"  yaml:"checks,omitempty"`
	History []costs.AttemptDetail `json:"history,omitempty" yaml:"history,omitempty"`
	Reviews []document.Review     `json:"reviews,omitempty" yaml:"reviews,omitempty"`
	Diff    string                `json:"diff,omitempty"    yaml:"diff,omitempty"` // only of a task that is shown alone
}

// TaskOf returns the document of a task, without its attempts and its change.
// It reads nothing but the view, so the inbox makes one for each task of a decision.
func TaskOf(v *forge.View, t *forge.Task) Task {
	d := Task{
		ID: t.ID, Title: t.Title, Status: t.Status, Plan: t.Plan, Requirements: t.Requirements, Item: t.Item, Files: t.RelevantFiles, DependsOn: t.DependsOn,
		Attempts: t.Attempts, Product: model.Product{Base: t.Base, Head: t.Head, Commit: t.Commit}, Failure: t.Failure,
		Paused: document.TaskPaused(v.Summary.Tasks, t.ID),
	}
	if f, ok := document.FailureOf(t.Failure); ok {
		d.Why = &f
	}
	d.Reviews = model.ReviewsOf(v, t.ID)
	return d
}

// made fills in what the task produced, beside its commits.
func (d *Task) made(p *model.Product) { d.PatchID, d.Changed = p.PatchID, p.Changed }

// showTask prints a task with its attempts and its change.
//
// A change that git does not have here, as in a clone that was not fetched, is told
// on standard error, and the rest is shown. Without a repository there is no diff.
func showTask(ctx context.Context, a *kit.App, t *target.Target, v *forge.View, task *forge.Task, format render.Format) error {
	d := TaskOf(v, task)
	work, err := t.Work(ctx, v.Intent.ID)
	if err != nil {
		return err
	}
	for i := range work.PlanTasks {
		if work.PlanTasks[i].ID == d.ID {
			d.made(&work.PlanTasks[i].Product)
		}
	}
	attempts, err := costs.Attempts(ctx, t, v.Intent.ID)
	if err != nil {
		return err
	}
	for _, attempt := range attempts {
		if attempt.Task == d.ID {
			d.History = append(d.History, attempt)
		}
	}
	checks, err := pending.Checks(ctx, t, v.Intent.ID)
	if err != nil {
		return err
	}
	d.Checks = model.ChecksOf(checks[d.ID])
	if t.Repo != nil && d.Head != "" {
		diff, err := Diff(ctx, t, &d)
		if err != nil {
			a.Say("cannot show the change: %v", err)
		}
		d.Diff = diff
	}
	if format.Data() {
		return format.Write(a.Out, d)
	}
	return printTask(a, &d, document.ItemOf(&v.Summary))
}

// printTask prints everything about a task of an intent.
// Issues that a review repeats word for word are named as the same, so that a new one stands out.
func printTask(a *kit.App, d *Task, of document.Item) error {
	fmt.Fprintf(a.Out, "%s  %s\n", a.Style(a.Out).Bold(string(d.ID)), kit.Safe(d.Title))
	a.Field("status", string(d.Status))
	if d.Paused {
		a.Field("now", document.HowToResume(&of, d.ID))
	}
	a.Field("attempts", fmt.Sprint(d.Attempts))
	a.Field("failure", kit.Safe(d.Failure))
	if d.Why != nil {
		a.Field("that is", d.Why.String())
	}
	a.Field("item", kit.Safe(d.Item))
	a.Field("files", kit.Safe(strings.Join(d.Files, ", ")))
	a.Field("base", render.ShortCommit(d.Base))
	a.Field("head", render.ShortCommit(d.Head))
	a.Field("commit", render.ShortCommit(d.Commit))
	a.Field("patch", render.ShortCommit(d.PatchID))
	a.Field("changed", kit.Safe(strings.Join(d.Changed, ", ")))
	if plan := kit.Safe(d.Plan); plan != "" {
		fmt.Fprintf(a.Out, "\n%s\n", kit.Indent(plan, "  "))
	}
	if len(d.Requirements) > 0 {
		a.Heading("requirements")
		for i, r := range d.Requirements {
			fmt.Fprintf(a.Out, "  %d. %s\n", i+1, kit.Safe(r))
		}
	}
	if len(d.History) > 0 {
		a.Heading("attempts")
		if err := costs.PrintAttempts(a, d.History); err != nil {
			return err
		}
	}
	if len(d.Checks) > 0 {
		a.Heading("checks of the newest change; v1 is the first verify command")
		document.PrintChecks(a, d.Checks)
	}
	if len(d.Reviews) > 0 {
		a.Heading("reviews")
		for i := range d.Reviews {
			r := d.Reviews[i]
			if i > 0 && len(r.Issues) > 0 && slices.Equal(r.Issues, d.Reviews[i-1].Issues) {
				r.Issues = []string{"the same as before"}
			}
			document.PrintReview(a, &r)
		}
	}
	if d.Diff != "" {
		a.Heading("change")
		fmt.Fprintln(a.Out, kit.Safe(d.Diff))
	}
	return nil
}

// printTaskLine prints a task among those of its intent, without what was said already.
// Its plan and requirements are printed while it has not begun; later `pfl-forge show`
// of the task has them. Issues are those of all reviews that rejected it.
func printTaskLine(a *kit.App, d *Task, said *document.Said) {
	fmt.Fprintf(a.Out, "  %s  %s", d.ID, d.Status)
	if d.Attempts > 1 {
		fmt.Fprintf(a.Out, ", %s", render.Count(d.Attempts, "attempt"))
	}
	if d.Commit != "" {
		fmt.Fprintf(a.Out, ", %s", render.ShortCommit(d.Commit))
	}
	fmt.Fprintf(a.Out, "  %s\n", kit.Safe(d.Title))
	if d.Status == forge.TaskPending {
		document.PrintPlan(a, d.Plan, "      ")
		for i, r := range d.Requirements {
			fmt.Fprintf(a.Out, "      requirement %d: %s\n", i+1, kit.Safe(r))
		}
	}
	var issues []string
	for i := range d.Reviews {
		if r := &d.Reviews[i]; r.Verdict == forge.VerdictRejected {
			issues = append(issues, r.Issues...)
		}
	}
	document.PrintTaskFailure(a, said, d.ID, d.Failure, issues)
}

// Diff returns the change of a task as a patch: as it was merged, or else as its last head
// has it. What is longer than maxDiff is cut, which its last line says. The task has a
// head, and the target a repository.
// The patch has the bytes of the repository: the caller makes it safe for a terminal.
func Diff(ctx context.Context, t *target.Target, d *Task) (string, error) {
	head, err := git.ParseOID(d.Head)
	if err != nil {
		return "", err
	}
	base, err := git.ParseOID(d.Base)
	if err != nil {
		return "", err
	}
	patch, cut, err := t.Repo.Store.Diff(ctx, base, head, maxDiff)
	if err != nil {
		return "", err
	}
	if cut {
		return string(patch) + fmt.Sprintf("... cut after %d bytes: git diff %s %s\n", maxDiff, base.Short(), head.Short()), nil
	}
	return string(patch), nil
}
