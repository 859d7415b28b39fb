package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
)

// entry is something that waits for a person, as programs read it.
type entry struct {
	item `yaml:",inline"`

	Commands  []string   `json:"commands"            yaml:"commands"`
	Work      []work     `json:"plan_tasks"          yaml:"plan_tasks"`
	Questions []question `json:"questions,omitempty" yaml:"questions,omitempty"`
}

// work is a task of a plan.
type work struct {
	ID      forge.TaskID     `json:"id"                yaml:"id"`
	Title   string           `json:"title"             yaml:"title"`
	Status  forge.TaskStatus `json:"status"            yaml:"status"`
	Plan    string           `json:"plan,omitempty"    yaml:"plan,omitempty"`
	Files   []string         `json:"files,omitempty"   yaml:"files,omitempty"`
	Failure string           `json:"failure,omitempty" yaml:"failure,omitempty"`
	Issues  []string         `json:"issues,omitempty"  yaml:"issues,omitempty"` // of the last review, if it rejected
}

func (a *app) inboxCommand() *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "list what waits for you, why, and what you can do",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.inbox(cmd.Context(), format) },
	}
	output(cmd, &format)
	return cmd
}

func (a *app) inbox(ctx context.Context, format render.Format) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	all, err := t.summaries(ctx)
	if err != nil {
		return err
	}
	list := []entry{}
	for i := range all {
		if all[i].Waiting == "" {
			continue
		}
		v, err := t.view(ctx, all[i].Key.Intent)
		if err != nil {
			return err
		}
		if v.Summary.Waiting != "" { // it may have gone on meanwhile
			list = append(list, entryOf(v))
		}
	}
	switch {
	case format.Data():
		return format.Write(a.out, list)
	case format == render.Name:
		for i := range list {
			fmt.Fprintln(a.out, list[i].ID)
		}
		return nil
	}
	if len(list) == 0 {
		a.say("nothing waits for you")
	}
	for i := range list {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		a.printEntry(&list[i])
	}
	return nil
}

func entryOf(v *forge.View) entry {
	e := entry{item: itemOf(&v.Summary), Commands: commands(&v.Summary), Questions: questions(&v.Intent), Work: []work{}}
	for i := range v.Tasks {
		task := &v.Tasks[i]
		e.Work = append(e.Work, work{
			ID: task.ID, Title: task.Title, Status: task.Status, Plan: task.Plan, Files: task.RelevantFiles,
			Failure: task.Failure, Issues: issues(v, task),
		})
	}
	return e
}

// issues returns what the last review of a task that is not done rejected.
func issues(v *forge.View, task *forge.Task) []string {
	var last *forge.Review
	for i := range v.Reviews {
		if v.Reviews[i].TaskID == task.ID {
			last = &v.Reviews[i]
		}
	}
	if last == nil || last.Verdict != forge.VerdictRejected || task.Status == forge.TaskDone {
		return nil
	}
	return last.Issues
}

// commands returns what a person can do about an intent, exactly as they type it.
func commands(s *forge.Summary) []string {
	id := string(s.Key.Intent)
	show := "pfl-forge show " + id
	switch s.Waiting {
	case forge.WaitingApproval:
		approve := "pfl-forge approve " + id
		if s.Plan != "" {
			approve += " --plan " + s.Plan
		}
		return []string{approve, "pfl-forge reject " + id + " --reason '...'", show}
	case forge.WaitingClarification:
		return []string{"pfl-forge answer " + id + " 1 '...'", "pfl-forge reject " + id + " --reason '...'", show}
	case forge.WaitingDirty:
		return append([]string{"git commit or git stash, then pfl-forge retry " + id, "pfl-forge cancel " + id, show}, showTasks(s)...)
	case forge.WaitingBudget:
		more := "pfl-forge retry " + id + " --budget USD"
		if strings.Contains(s.Reason, "budget.") { // of all intents together
			more = "raise the budget in " + config.FileName + " and commit it, then pfl-forge retry " + id
		}
		return []string{more, "pfl-forge cancel " + id, show}
	case forge.WaitingFailed:
		return append([]string{
			"pfl-forge retry " + id, "pfl-forge retry " + id + " --with 'instructions'", "pfl-forge cancel " + id, show,
		}, showTasks(s)...)
	}
	return []string{show}
}

// showTasks returns how to see the changes of the first tasks that failed or wait.
func showTasks(s *forge.Summary) []string {
	const most = 3
	var list []string
	for _, t := range s.Tasks[:min(most, len(s.Tasks))] {
		list = append(list, "pfl-forge show "+string(t.ID))
	}
	return list
}

func (a *app) printEntry(e *entry) {
	style := a.style(a.out)
	fmt.Fprintf(a.out, "%s  %s\n", style.Bold(string(e.ID)), safe(e.Title))
	fmt.Fprintf(a.out, "  %s\n", style.Attention(e.why()))
	for _, f := range e.Failures {
		fmt.Fprintf(a.out, "  %s\n", f)
	}
	if e.Waiting == forge.WaitingApproval || e.Waiting == forge.WaitingFailed {
		for i := range e.Work {
			a.printWork(&e.Work[i])
		}
	}
	for i := range e.Questions {
		if e.Waiting == forge.WaitingClarification {
			a.printQuestion(&e.Questions[i], "  ")
		}
	}
	if cost := e.cost(); cost != "" {
		fmt.Fprintf(a.out, "  so far: %s\n", cost)
	}
	for _, c := range e.Commands {
		fmt.Fprintf(a.out, "  > %s\n", c)
	}
}

// why says in one line why an intent waits.
func (e *entry) why() string {
	reason := safe(e.Reason)
	switch e.Waiting {
	case forge.WaitingApproval:
		text := "waits for approval"
		if e.Risk != "" {
			text += ", risk " + string(e.Risk)
		}
		return withReason(text, reason)
	case forge.WaitingClarification:
		return "waits for answers"
	case forge.WaitingDirty:
		return withReason("waits for your files", reason)
	case forge.WaitingBudget:
		return withReason("waits for money", reason)
	case forge.WaitingFailed:
	}
	return withReason(string(e.Status), reason)
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

func (e *entry) cost() string {
	return render.Consumed(&forge.Usage{InputTokens: e.Tokens, CostUSD: e.CostUSD})
}

func (a *app) printWork(w *work) {
	fmt.Fprintf(a.out, "  %s  %s  %s\n", w.ID, w.Status, safe(w.Title))
	if w.Status == forge.TaskPending {
		a.printPlanText(w.Plan, "      ")
	}
	if w.Failure != "" {
		fmt.Fprintln(a.out, indent(safe(w.Failure), "      "))
	}
	for _, issue := range w.Issues {
		fmt.Fprintln(a.out, indent("review: "+safe(issue), "      "))
	}
}

// printPlanText prints the beginning of a task's plan.
func (a *app) printPlanText(plan, by string) {
	const most = 8
	plan = safe(plan)
	if plan == "" {
		return
	}
	lines := strings.Split(plan, "\n")
	if len(lines) > most {
		lines = append(lines[:most], "...")
	}
	fmt.Fprintln(a.out, indent(strings.Join(lines, "\n"), by))
}
