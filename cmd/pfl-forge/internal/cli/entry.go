package cli

import (
	"context"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
)

// entry is something that waits for a person, as programs read it.
type entry struct {
	item `yaml:",inline"`

	Criteria  []evaluation `json:"criteria,omitempty"  yaml:"criteria,omitempty"` // of a goal, as its last judgment says
	Judged    bool         `json:"judged,omitempty"    yaml:"judged,omitempty"`   // there is a judgment
	Commands  []string     `json:"commands"            yaml:"commands"`
	Work      []work       `json:"plan_tasks"          yaml:"plan_tasks"`
	Questions []question   `json:"questions,omitempty" yaml:"questions,omitempty"`
}

// work is a task of a plan, and what came of it so far.
type work struct {
	ID       forge.TaskID     `json:"id"                 yaml:"id"`
	Title    string           `json:"title"              yaml:"title"`
	Status   forge.TaskStatus `json:"status"             yaml:"status"`
	Plan     string           `json:"plan,omitempty"     yaml:"plan,omitempty"`
	Steps    []string         `json:"steps,omitempty"    yaml:"steps,omitempty"`
	Files    []string         `json:"files,omitempty"    yaml:"files,omitempty"` // that it is expected to change
	Paused   bool             `json:"paused,omitempty"   yaml:"paused,omitempty"`
	Attempts int              `json:"attempts,omitempty" yaml:"attempts,omitempty"`
	Changed  []string         `json:"changed,omitempty"  yaml:"changed,omitempty"` // that its last attempt changed
	Verify   *verified        `json:"verify,omitempty"   yaml:"verify,omitempty"`
	Failure  string           `json:"failure,omitempty"  yaml:"failure,omitempty"`
	Issues   []string         `json:"issues,omitempty"   yaml:"issues,omitempty"` // of the last review, if it rejected
	Reviews  []reviewDetail   `json:"reviews,omitempty"  yaml:"reviews,omitempty"`
}

// verified is what the verify commands said of a task's last change.
type verified struct {
	Passed  bool   `json:"passed"            yaml:"passed"`
	Command string `json:"command,omitempty" yaml:"command,omitempty"` // the one that failed
	Output  string `json:"output,omitempty"  yaml:"output,omitempty"`
}

// entry returns what a decision on an intent needs; nil if it waits for nobody.
func (t *target) entry(ctx context.Context, id forge.IntentID) (*entry, *forge.View, error) {
	v, err := t.view(ctx, id)
	if err != nil || v.Summary.Waiting == "" {
		return nil, v, err
	}
	found, err := t.evidence(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return entryOf(v, found), v, nil
}

func entryOf(v *forge.View, found map[forge.TaskID]*evidence) *entry {
	e := entry{item: itemOf(&v.Summary), Commands: commands(&v.Summary), Questions: questions(&v.Intent), Work: []work{}}
	e.planParts(v)
	if v.Goal != nil {
		d := goalOf(v, nil)
		e.Criteria, e.Judged = d.Criteria, d.Judgment != nil
	}
	for i := range v.Tasks {
		task := &v.Tasks[i]
		w := work{
			ID: task.ID, Title: task.Title, Status: task.Status, Plan: task.Plan, Steps: task.Steps, Files: task.RelevantFiles,
			Attempts: task.Attempts, Failure: task.Failure, Issues: issues(v, task), Reviews: reviewsOf(v, task.ID),
			Paused: taskPaused(v.Summary.Tasks, task.ID),
		}
		if f := found[task.ID]; f != nil {
			w.Changed = f.Files
			if f.Verify != nil {
				w.Verify = &verified{f.Verify.Passed, f.Verify.Command, f.Verify.Output}
			}
		}
		e.Work = append(e.Work, w)
	}
	return &e
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
	case forge.WaitingPaused:
		resume := "pfl-forge resume " + id
		if s.Reason == forge.ProjectPaused {
			resume = "pfl-forge resume --all"
		}
		return append([]string{resume, "pfl-forge cancel " + id, show}, showTasks(s)...)
	case forge.WaitingFailed:
		if s.Goal != nil {
			return append([]string{
				"pfl-forge goal resume " + id, "pfl-forge goal resume " + id + " --with 'instructions'", "pfl-forge goal cancel " + id,
				"pfl-forge goal status " + id,
			}, showTasks(s)...)
		}
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
	case forge.WaitingPaused:
		return withReason("is paused", reason)
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
