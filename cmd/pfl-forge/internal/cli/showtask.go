package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/git"
)

// maxDiff bounds what show prints of a change, in bytes.
const maxDiff = 256 << 10

// taskDetail is everything about a task, as programs read it.
type taskDetail struct {
	ID        forge.TaskID     `json:"id"                   yaml:"id"`
	Title     string           `json:"title"                yaml:"title"`
	Status    forge.TaskStatus `json:"status"               yaml:"status"`
	Plan      string           `json:"plan,omitempty"       yaml:"plan,omitempty"`
	Item      string           `json:"item,omitempty"       yaml:"item,omitempty"`
	Files     []string         `json:"files,omitempty"      yaml:"files,omitempty"`
	DependsOn []forge.TaskID   `json:"depends_on,omitempty" yaml:"depends_on,omitempty"`
	Attempts  int              `json:"attempts"             yaml:"attempts"`
	Base      string           `json:"base,omitempty"       yaml:"base,omitempty"`
	Head      string           `json:"head,omitempty"       yaml:"head,omitempty"`
	Commit    string           `json:"commit,omitempty"     yaml:"commit,omitempty"`
	Paused    bool             `json:"paused,omitempty"     yaml:"paused,omitempty"`
	Failure   string           `json:"failure,omitempty"    yaml:"failure,omitempty"`
	Why       *failure         `json:"why,omitempty"        yaml:"why,omitempty"`     // what Failure means
	History   []attemptDetail  `json:"history,omitempty"    yaml:"history,omitempty"` // only of a task that is shown alone
	Reviews   []reviewDetail   `json:"reviews,omitempty"    yaml:"reviews,omitempty"`
	Diff      string           `json:"diff,omitempty"       yaml:"diff,omitempty"` // only of a task that is shown alone
}

// reviewDetail is a verdict on a head commit.
type reviewDetail struct {
	Attempt     int           `json:"attempt"               yaml:"attempt"`
	Head        string        `json:"head"                  yaml:"head"`
	Verdict     forge.Verdict `json:"verdict"               yaml:"verdict"`
	Issues      []string      `json:"issues,omitempty"      yaml:"issues,omitempty"`
	Suggestions []string      `json:"suggestions,omitempty" yaml:"suggestions,omitempty"`
}

func taskOf(v *forge.View, t *forge.Task) taskDetail {
	d := taskDetail{
		ID: t.ID, Title: t.Title, Status: t.Status, Plan: t.Plan, Item: t.Item, Files: t.RelevantFiles, DependsOn: t.DependsOn,
		Attempts: t.Attempts, Base: t.Base, Head: t.Head, Commit: t.Commit, Failure: t.Failure,
		Paused: taskPaused(v.Summary.Tasks, t.ID),
	}
	if f, ok := failureOf(t.Failure); ok {
		d.Why = &f
	}
	d.Reviews = reviewsOf(v, t.ID)
	return d
}

// taskPaused says whether a task is paused, by itself or with its intent.
func taskPaused(all []forge.TaskSummary, id forge.TaskID) bool {
	return slices.ContainsFunc(all, func(t forge.TaskSummary) bool { return t.ID == id && t.Paused })
}

// howToResume says that a task of an intent is paused, and how it goes on.
func howToResume(i *item, id forge.TaskID) string {
	if i.pausedWhole() {
		return "paused with its intent"
	}
	return "paused; next: pfl-forge resume " + string(id)
}

// reviewsOf returns the reviews of a task, the first one first.
func reviewsOf(v *forge.View, id forge.TaskID) []reviewDetail {
	var list []reviewDetail
	for i := range v.Reviews {
		if r := &v.Reviews[i]; r.TaskID == id {
			list = append(list, reviewDetail{r.Attempt, r.Head, r.Verdict, r.Issues, r.Suggestions})
		}
	}
	return list
}

func (a *app) showTask(ctx context.Context, t *target, v *forge.View, task *forge.Task, format render.Format) error {
	d := taskOf(v, task)
	attempts, err := t.attempts(ctx, v.Intent.ID)
	if err != nil {
		return err
	}
	for _, attempt := range attempts {
		if attempt.Task == d.ID {
			d.History = append(d.History, attempt)
		}
	}
	if t.repo != nil && d.Head != "" {
		diff, err := t.diff(ctx, &d)
		if err != nil {
			a.say("cannot show the change: %v", err)
		}
		d.Diff = diff
	}
	if format.Data() {
		return format.Write(a.out, d)
	}
	fmt.Fprintf(a.out, "%s  %s\n", a.style(a.out).Bold(string(d.ID)), safe(d.Title))
	a.field("status", string(d.Status))
	if d.Paused {
		i := itemOf(&v.Summary)
		a.field("now", howToResume(&i, d.ID))
	}
	a.field("attempts", fmt.Sprint(d.Attempts))
	a.field("failure", safe(d.Failure))
	if d.Why != nil {
		a.field("that is", d.Why.String())
	}
	a.field("item", safe(d.Item))
	a.field("files", safe(strings.Join(d.Files, ", ")))
	a.field("base", render.ShortCommit(d.Base))
	a.field("head", render.ShortCommit(d.Head))
	a.field("commit", render.ShortCommit(d.Commit))
	if plan := safe(d.Plan); plan != "" {
		fmt.Fprintf(a.out, "\n%s\n", indent(plan, "  "))
	}
	if len(d.History) > 0 {
		a.heading("attempts")
		if err := a.printAttempts(d.History); err != nil {
			return err
		}
	}
	if len(d.Reviews) > 0 {
		a.heading("reviews")
		for i := range d.Reviews {
			a.printReview(&d.Reviews[i])
		}
	}
	if d.Diff != "" {
		a.heading("change")
		fmt.Fprintln(a.out, safe(d.Diff))
	}
	return nil
}

func (a *app) printReview(r *reviewDetail) {
	fmt.Fprintf(a.out, "  attempt %d, %s: %s\n", r.Attempt, render.ShortCommit(r.Head), r.Verdict)
	for _, issue := range r.Issues {
		fmt.Fprintln(a.out, indent(safe(issue), "    - "))
	}
	for _, s := range r.Suggestions {
		fmt.Fprintln(a.out, indent("suggestion: "+safe(s), "    - "))
	}
}

func (a *app) printTaskLine(d *taskDetail) {
	fmt.Fprintf(a.out, "  %s  %s", d.ID, d.Status)
	if d.Attempts > 1 {
		fmt.Fprintf(a.out, ", %s", render.Count(d.Attempts, "attempt"))
	}
	if d.Commit != "" {
		fmt.Fprintf(a.out, ", %s", render.ShortCommit(d.Commit))
	}
	fmt.Fprintf(a.out, "  %s\n", safe(d.Title))
	if d.Status == forge.TaskPending {
		a.printPlanText(d.Plan, "      ")
	}
	if d.Failure != "" {
		fmt.Fprintln(a.out, indent(safe(d.Failure), "      "))
	}
	for i := range d.Reviews {
		if r := &d.Reviews[i]; r.Verdict == forge.VerdictRejected {
			for _, issue := range r.Issues {
				fmt.Fprintln(a.out, indent("review: "+safe(issue), "      "))
			}
		}
	}
}

// diff returns the change of a task: as it was integrated, or else its last head.
func (t *target) diff(ctx context.Context, d *taskDetail) (string, error) {
	head, err := git.ParseOID(d.Head)
	if err != nil {
		return "", err
	}
	base, err := git.ParseOID(d.Base)
	if err != nil {
		return "", err
	}
	patch, cut, err := t.repo.Store.Diff(ctx, base, head, maxDiff)
	if err != nil {
		return "", err
	}
	if cut {
		return string(patch) + fmt.Sprintf("... cut after %d bytes: git diff %s %s\n", maxDiff, base.Short(), head.Short()), nil
	}
	return string(patch), nil
}

// parameters returns the values of a recipe in brackets.
func parameters(with map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(with)) {
		parts = append(parts, name+"="+with[name])
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
