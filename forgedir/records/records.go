package records

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
)

// TaskDoc is the content of work/<task>.yaml.
type TaskDoc struct {
	ID            string    `schema:"task"               yaml:"id"`
	IntentID      string    `schema:"intent"             yaml:"intent_id"`
	Title         string    `yaml:"title"` // one line
	Status        string    `schema:"TaskStatus"         yaml:"status"`
	Plan          string    `yaml:"plan"`                                         // how it is to be done
	RelevantFiles []string  `yaml:"relevant_files"`                               // what it is expected to be about
	Steps         []string  `yaml:"implementation_steps"`                         // one after the other
	Context       string    `yaml:"context"`                                      // what else one should know
	Complexity    string    `schema:"Complexity"         yaml:"complexity"`       // picks the model
	DependsOn     []string  `schema:"task"               yaml:"depends_on"`       // tasks of the same intent that have to be done before
	Criteria      []string  `yaml:"criteria,omitempty"`                           // of a goal: when it is done
	Name          string    `yaml:"name,omitempty"`                               // the recipe's name of it
	Item          string    `yaml:"item,omitempty"`                               // the line of the recipe's each that it stands for
	Write         *writeDoc `yaml:"write,omitempty"`                              // the file that it writes, without calling an agent
	Attempts      int       `yaml:"attempts"`                                     // implementations so far
	Branch        string    `yaml:"branch,omitempty"`                             // that its agent works on, in its checkout
	Base          string    `schema:"commit"             yaml:"base,omitempty"`   // what head was made on
	Head          string    `schema:"commit"             yaml:"head,omitempty"`   // the last commit that was made
	Commit        string    `schema:"commit"             yaml:"commit,omitempty"` // on the base branch
	Failure       string    `yaml:"failure,omitempty"`                            // why it failed, or why it waits
}

// writeDoc is a whole file of the repository.
type writeDoc struct {
	Path    string `yaml:"path"`    // from the repository's root
	Content string `yaml:"content"` // all of it
}

// taskDocOf returns a task's file. It names no branch before the first attempt: there is
// none.
func taskDocOf(t *forge.Task) TaskDoc {
	d := TaskDoc{
		ID: string(t.ID), IntentID: string(t.IntentID), Title: t.Title, Status: string(t.Status), Plan: t.Plan,
		RelevantFiles: t.RelevantFiles, Steps: t.Steps, Context: t.Context, Complexity: string(t.Complexity),
		DependsOn: texts(t.DependsOn), Criteria: t.Criteria, Name: t.Name, Item: t.Item, Attempts: t.Attempts,
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
	TaskID      string    `schema:"task"      yaml:"task_id"`
	Attempt     int       `yaml:"attempt"`                 // the implementation that was read
	Head        string    `schema:"commit"    yaml:"head"` // exactly the commit that was read
	Verdict     string    `schema:"Verdict"   yaml:"verdict"`
	Issues      []string  `yaml:"issues"`      // what a rejection rests on
	Suggestions []string  `yaml:"suggestions"` // what could be better, also when it is approved
	CreatedAt   time.Time `yaml:"created_at"`
}

func reviewDocOf(r *forge.Review) ReviewDoc {
	return ReviewDoc{
		TaskID: string(r.TaskID), Attempt: r.Attempt, Head: r.Head, Verdict: string(r.Verdict),
		Issues: r.Issues, Suggestions: r.Suggestions, CreatedAt: r.CreatedAt.UTC(),
	}
}

// ObservationDoc is an entry of observations.yaml.
type ObservationDoc struct {
	ID        string        `yaml:"id,omitempty"`               // unique within the project
	Content   string        `yaml:"content"`                    // what was noticed
	Evidence  []evidenceDoc `yaml:"evidence"`                   // what it rests on
	Source    string        `schema:"Step"       yaml:"source"` // whose agent noticed it
	IntentID  string        `schema:"intent"     yaml:"intent_id"`
	Processed bool          `yaml:"processed"` // a reflection has read it
	CreatedAt time.Time     `yaml:"created_at"`
}

// evidenceDoc is a piece of evidence for an observation.
type evidenceDoc struct {
	Type string `schema:"EvidenceType" yaml:"type"`
	Ref  string `yaml:"ref"` // a path, a skill, a record of the history
}

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
