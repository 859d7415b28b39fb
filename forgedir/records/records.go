package records

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
)

// TaskDoc is the content of work/<task>.yaml.
type TaskDoc struct {
	ID       string `schema:"task"   yaml:"id"`
	IntentID string `schema:"intent" yaml:"intent_id"`
	// Title is one line.
	Title  string `yaml:"title"`
	Status string `schema:"TaskStatus" yaml:"status"`
	// Plan says how the task is to be done.
	Plan string `yaml:"plan"`
	// RelevantFiles are expected to be changed, or worth reading; the plan is not bound to them.
	RelevantFiles []string `yaml:"relevant_files"`
	// Steps are done one after the other.
	Steps []string `yaml:"implementation_steps"`
	// Context is background that the plan does not repeat.
	Context string `yaml:"context"`
	// Complexity picks the model.
	Complexity string `schema:"Complexity" yaml:"complexity"`
	// DependsOn lists tasks of the same intent that have to be merged before this one begins.
	DependsOn []string `schema:"task" yaml:"depends_on"`
	// Criteria are those of a goal, or the requirements of any other task: all
	// of them have to be met.
	Criteria []string `yaml:"criteria,omitempty"`
	// Name is the recipe's name of the task.
	Name string `yaml:"name,omitempty"`
	// Item is the line of the recipe's each that the task stands for.
	Item string `yaml:"item,omitempty"`
	// Write is the file that the task writes without calling an agent.
	Write *writeDoc `yaml:"write,omitempty"`
	// Attempts counts the implementations so far.
	Attempts int `yaml:"attempts"`
	// Branch is the one that the task's agent works on, in its checkout.
	Branch string `yaml:"branch,omitempty"`
	// Base is the commit that head was made on.
	Base string `schema:"commit" yaml:"base,omitempty"`
	// Head is the last commit that was made.
	Head string `schema:"commit" yaml:"head,omitempty"`
	// Commit is the merged one, on the base branch.
	Commit string `schema:"commit" yaml:"commit,omitempty"`
	// Failure says why the task failed, or why it waits.
	Failure string `yaml:"failure,omitempty"`
}

// writeDoc is a whole file of the repository.
type writeDoc struct {
	// Path begins at the repository's root.
	Path string `yaml:"path"`
	// Content is all of the file.
	Content string `yaml:"content"`
}

// taskDocOf returns a task's file. It names no branch before the first attempt: there is
// none.
func taskDocOf(t *forge.Task) TaskDoc {
	d := TaskDoc{
		ID: string(t.ID), IntentID: string(t.IntentID), Title: t.Title, Status: string(t.Status), Plan: t.Plan,
		RelevantFiles: t.RelevantFiles, Steps: t.Steps, Context: t.Context, Complexity: string(t.Complexity),
		DependsOn: texts(t.DependsOn), Criteria: slices.Concat(t.Criteria, t.Requirements), Name: t.Name, Item: t.Item, Attempts: t.Attempts,
		Base: t.Base, Head: t.Head, Commit: t.Commit, Failure: t.Failure,
	}
	if t.Attempts > 0 {
		d.Branch = string(git.TaskBranch(git.Name(t.ID)))
	}
	if t.Write != nil {
		d.Write = &writeDoc{t.Write.Path, t.Write.Content}
	}
	return d
}

// ReviewDoc is the content of reviews/<task>-<attempt>.yaml.
type ReviewDoc struct {
	TaskID string `schema:"task" yaml:"task_id"`
	// Attempt is the implementation that was reviewed.
	Attempt int `yaml:"attempt"`
	// Head is exactly the commit that was reviewed.
	Head    string `schema:"commit"  yaml:"head"`
	Verdict string `schema:"Verdict" yaml:"verdict"`
	// Agent made the review, asked for Model; a recipe's check has neither.
	Agent string `yaml:"agent,omitempty"`
	Model string `yaml:"model,omitempty"`
	// Second tells the review of the second reviewer from that of the first.
	Second bool `yaml:"second,omitempty"`
	// Claims answer the requirements; a recipe's check has none.
	Claims []claimDoc `yaml:"requirements,omitempty"`
	// Checks are those that the reviewer asked for.
	Checks []checkDoc `yaml:"checks,omitempty"`
	// Issues are the reasons of a rejection.
	Issues []string `yaml:"issues"`
	// Suggestions can come with an approval, too.
	Suggestions []string  `yaml:"suggestions"`
	CreatedAt   time.Time `yaml:"created_at"`
}

func reviewDocOf(r *forge.Review) ReviewDoc {
	return ReviewDoc{
		TaskID: string(r.TaskID), Attempt: r.Attempt, Head: r.Head, Verdict: string(r.Verdict), Agent: r.By.Agent, Model: r.By.Model, Second: r.Second,
		Claims: claimDocs(r.Claims), Checks: checkDocs(r.Asked), Issues: r.Issues, Suggestions: r.Suggestions, CreatedAt: r.CreatedAt.UTC(),
	}
}

// ObservationDoc is an entry of observations.yaml.
type ObservationDoc struct {
	// ID is unique within the project.
	ID string `yaml:"id,omitempty"`
	// Content is the observation in words.
	Content string `yaml:"content"`
	// Evidence lists the grounds of the observation.
	Evidence []evidenceDoc `yaml:"evidence"`
	// Source is the step whose agent made the observation.
	Source   string `schema:"Step"   yaml:"source"`
	IntentID string `schema:"intent" yaml:"intent_id"`
	// Processed is set once a reflection has read the observation.
	Processed bool      `yaml:"processed"`
	CreatedAt time.Time `yaml:"created_at"`
}

// evidenceDoc is a piece of evidence for an observation.
type evidenceDoc struct {
	Type string `schema:"EvidenceType" yaml:"type"`
	// Ref is a path, a skill or a record of the history.
	Ref string `yaml:"ref"`
}

// observationDocOf returns an observation as its file has it. The time is UTC, and
// evidence never null.
func observationDocOf(o *forge.Observation) ObservationDoc {
	d := ObservationDoc{
		ID: o.ID, Content: o.Content, Evidence: []evidenceDoc{}, Source: string(o.Source),
		IntentID: string(o.IntentID), Processed: o.Processed, CreatedAt: o.CreatedAt.UTC(),
	}
	for _, e := range o.Evidence {
		d.Evidence = append(d.Evidence, evidenceDoc{string(e.Type), e.Ref})
	}
	return d
}

// observationDocs returns an empty list instead of nil, so that it is written as [].
func observationDocs(list []forge.Observation) []ObservationDoc {
	docs := []ObservationDoc{}
	for i := range list {
		docs = append(docs, observationDocOf(&list[i]))
	}
	return docs
}

// texts returns the words of a list as plain texts.
func texts[T ~string](list []T) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}
