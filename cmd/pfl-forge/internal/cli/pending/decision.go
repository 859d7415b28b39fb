// Package pending is the one model of a pending decision: an intent that waits for a
// person.
//
// A Decision has the reason why the intent waits, its plan, its attempts and its questions. A
// Choice is one possible action: its key, the input that it needs of a person (Need), the event
// that it sends, and the shell commands that do the same. A Batch sends several choices and
// prints their outcomes.
//
// The inbox, the commands of package control, the questions of package answer, the live
// view and the goals' commands are all made of these. To add a choice, add a variable in
// choice.go and name it in Choices.
package pending

import (
	"context"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	model "github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/concealed"
)

// Decision is an intent that waits for a person, with everything that they need to know,
// as programs read it.
type Decision struct {
	document.Item `yaml:",inline"`

	// Trace is that of the newest run.
	document.Trace `yaml:",inline"`

	Summary forge.Summary `json:"-" yaml:"-"` // the intent that it was made of

	// Text is the body of an intent that waits for approval to be analyzed, and
	// Asked all that its hash is of; otherwise both are empty.
	Text  string        `json:"text,omitempty"  yaml:"text,omitempty"`
	Asked []model.Asked `json:"asked,omitempty" yaml:"asked,omitempty"`

	// Hidden are the parts of the request that a page which shows it as
	// Markdown would hide, while it waits for approval.
	Hidden []concealed.Finding `json:"hidden,omitempty" yaml:"hidden,omitempty"`

	// Criteria are those of a goal as its last judgment says. Judged says that there is a
	// judgment.
	Criteria []document.Claim `json:"criteria,omitempty" yaml:"criteria,omitempty"`
	Judged   bool             `json:"judged,omitempty"   yaml:"judged,omitempty"` // there is a judgment
	Commands []string         `json:"commands"           yaml:"commands"`         // what can be done, as it is typed

	// Also are the other intents that wait for the same act of a person: that
	// the base branch is mended.
	Also []forge.IntentID `json:"also,omitempty" yaml:"also,omitempty"`

	// Work are the tasks of the plan.
	Work []Task `json:"plan_tasks" yaml:"plan_tasks"`

	// Questions are all that were asked about the intent, also those that are answered.
	Questions []document.Question `json:"questions,omitempty" yaml:"questions,omitempty"`
}

// Task is a task of a plan, and what came of it so far.
type Task struct {
	ID     forge.TaskID     `json:"id"     yaml:"id"`
	Title  string           `json:"title"  yaml:"title"`
	Status forge.TaskStatus `json:"status" yaml:"status"`

	// Plan, Steps and Files are from the analysis: Files are those that it expects to change.
	Plan  string   `json:"plan,omitempty"  yaml:"plan,omitempty"`
	Steps []string `json:"steps,omitempty" yaml:"steps,omitempty"`
	Files []string `json:"files,omitempty" yaml:"files,omitempty"` // that it is expected to change

	// Write is a file that it writes without an agent.
	Write *model.Write `json:"write,omitempty" yaml:"write,omitempty"`

	// Requirements are answered by each review, by their numbers, which count from 1. Who
	// approves the plan approves them.
	Requirements []string `json:"requirements,omitempty" yaml:"requirements,omitempty"`

	// Paused says that the task is paused, by itself or with its intent.
	Paused   bool `json:"paused,omitempty"   yaml:"paused,omitempty"`
	Attempts int  `json:"attempts,omitempty" yaml:"attempts,omitempty"`

	// Changed are the files that its last attempt changed, and Verify is the outcome of
	// the verify commands on that change; nil if they did not run.
	Changed []string  `json:"changed,omitempty" yaml:"changed,omitempty"`
	Verify  *Verified `json:"verify,omitempty"  yaml:"verify,omitempty"`
	// Unverified says that the verify commands run in its merge.
	Unverified bool `json:"unverified,omitempty" yaml:"unverified,omitempty"`

	// Failure explains why it failed, and Issues are those that its last review rejected it
	// for. Issues is empty once
	// it is done.
	Failure string            `json:"failure,omitempty" yaml:"failure,omitempty"`
	Issues  []string          `json:"issues,omitempty"  yaml:"issues,omitempty"` // of the last review, if it rejected
	Reviews []document.Review `json:"reviews,omitempty" yaml:"reviews,omitempty"`
}

// Verified is the outcome of the verify commands on a task's last change.
type Verified struct {
	Passed bool `json:"passed" yaml:"passed"`

	// Command is the one that failed, with what it printed; both are empty if all passed.
	Command string `json:"command,omitempty" yaml:"command,omitempty"`
	Output  string `json:"output,omitempty"  yaml:"output,omitempty"`
}

// List returns every pending decision of a project, sorted by the intents' ids.
// A base branch that fails is one decision, however many intents wait for it.
func List(ctx context.Context, t *target.Target) ([]*Decision, error) {
	all, err := t.Summaries(ctx)
	if err != nil {
		return nil, err
	}
	list := []*Decision{}
	var red *Decision
	for i := range all {
		switch {
		case !Waits(&all[i]):
			continue
		case red != nil && all[i].Waiting == forge.WaitingBase:
			red.Also = append(red.Also, all[i].Key.Intent)
			continue
		}
		d, err := Load(ctx, t, all[i].Key.Intent)
		if err != nil {
			return nil, err
		}
		if d != nil { // it may have gone on meanwhile
			list = append(list, d)
			switch {
			case d.Waiting == forge.WaitingBase:
				red = d
				d.Also = waitingFor(forge.BaseRed, all)
			case strings.HasPrefix(d.Reason, forge.OriginAway):
				d.Also = waitingFor(forge.OriginAway, all)
			case strings.HasPrefix(d.Reason, forge.NoReplica):
				d.Also = waitingFor(forge.NoReplica, all)
			}
		}
	}
	return list, nil
}

// waitingFor returns the intents that wait for what a fact of the project
// begins with, but for the one that says so.
func waitingFor(fact string, all []forge.Summary) (list []forge.IntentID) {
	for i := range all {
		if strings.HasPrefix(all[i].Activity, "waits: "+fact) {
			list = append(list, all[i].Key.Intent)
		}
	}
	return list
}

// Load returns the pending decision on an intent, as that is now; nil if it waits for
// no person.
func Load(ctx context.Context, t *target.Target, id forge.IntentID) (*Decision, error) {
	v, err := t.View(ctx, id)
	if err != nil || !Waits(&v.Summary) {
		return nil, err
	}
	found, err := readEvidence(ctx, t, id)
	if err != nil {
		return nil, err
	}
	d := decisionOf(v, found)
	if document.AsksFirst(&v.Summary) {
		work, err := t.Work(ctx, id)
		if err != nil {
			return nil, err
		}
		d.Asked = work.Asked
	}
	d.Trace = t.Trace(id, v.Summary.Run)
	return d, nil
}

// decisionOf returns the pending decision on an intent, with what is found of its tasks'
// changes.
func decisionOf(v *forge.View, found map[forge.TaskID]*evidence) *Decision {
	e := Decision{
		Item: document.ItemOf(&v.Summary), Summary: v.Summary, Commands: Commands(&v.Summary),
		Questions: document.Questions(&v.Intent), Work: []Task{},
	}
	e.PlanChildren(v)
	if v.Summary.Waiting == forge.WaitingApproval {
		e.Hidden = concealed.In(v.Intent.Title, v.Intent.Body)
	}
	if document.AsksFirst(&v.Summary) {
		e.Text = v.Intent.Body
	}
	if v.Goal != nil {
		e.Criteria, e.Judged = document.CriteriaOf(v.Goal), v.Goal.FinalJudgment() != nil
	}
	for i := range v.Tasks {
		task := &v.Tasks[i]
		w := Task{
			ID: task.ID, Title: task.Title, Status: task.Status, Plan: task.Plan, Steps: task.Steps, Files: task.RelevantFiles,
			Requirements: task.Requirements,
			Attempts:     task.Attempts, Failure: task.Failure, Issues: issues(v, task), Reviews: model.ReviewsOf(v, task.ID),
			Paused: document.TaskPaused(v.Summary.Tasks, task.ID),
		}
		if task.Write != nil {
			w.Write = &model.Write{Path: task.Write.Path, Content: task.Write.Content}
		}
		if f := found[task.ID]; f != nil {
			w.Changed, w.Unverified = f.Files, f.Unverified
			if f.Verify != nil {
				w.Verify = &Verified{f.Verify.Passed, f.Verify.Command, f.Verify.Output}
			}
		}
		e.Work = append(e.Work, w)
	}
	return &e
}

// issues returns the issues for which the last review of a task rejected it, none if it is
// done.
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

// Cost returns the tokens and dollars that the intent has used so far, empty if it has not.
func (e *Decision) Cost() string {
	return render.Consumed(e.Tokens, e.CachedTokens, e.CostUSD)
}
