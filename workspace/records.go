package workspace

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// taskDoc is work/<task>.yaml.
type taskDoc struct {
	ID            string   `yaml:"id"`
	IntentID      string   `yaml:"intent_id"`
	Title         string   `yaml:"title"`
	Status        string   `yaml:"status"`
	Plan          string   `yaml:"plan"`
	RelevantFiles []string `yaml:"relevant_files"`
	Steps         []string `yaml:"implementation_steps"`
	Context       string   `yaml:"context"`
	Complexity    string   `yaml:"complexity"`
	DependsOn     []string `yaml:"depends_on"`
	Name          string   `yaml:"name,omitempty"`
	Item          string   `yaml:"item,omitempty"`
	Attempts      int      `yaml:"attempts"`
	Base          string   `yaml:"base,omitempty"`
	Head          string   `yaml:"head,omitempty"`
	Commit        string   `yaml:"commit,omitempty"`
	Failure       string   `yaml:"failure,omitempty"`
}

func taskDocOf(t *forge.Task) taskDoc {
	return taskDoc{
		ID: string(t.ID), IntentID: string(t.IntentID), Title: t.Title, Status: string(t.Status), Plan: t.Plan,
		RelevantFiles: t.RelevantFiles, Steps: t.Steps, Context: t.Context, Complexity: string(t.Complexity),
		DependsOn: texts(t.DependsOn), Name: t.Name, Item: t.Item, Attempts: t.Attempts,
		Base: t.Base, Head: t.Head, Commit: t.Commit, Failure: t.Failure,
	}
}

// reviewDoc is reviews/<task>-<attempt>.yaml.
type reviewDoc struct {
	TaskID      string    `yaml:"task_id"`
	Attempt     int       `yaml:"attempt"`
	Head        string    `yaml:"head"`
	Verdict     string    `yaml:"verdict"`
	Issues      []string  `yaml:"issues"`
	Suggestions []string  `yaml:"suggestions"`
	CreatedAt   time.Time `yaml:"created_at"`
}

func reviewDocOf(r *forge.Review) reviewDoc {
	return reviewDoc{
		TaskID: string(r.TaskID), Attempt: r.Attempt, Head: r.Head, Verdict: string(r.Verdict),
		Issues: r.Issues, Suggestions: r.Suggestions, CreatedAt: r.CreatedAt.UTC(),
	}
}

// observationDoc is an entry of observations.yaml.
type observationDoc struct {
	Content   string        `yaml:"content"`
	Evidence  []evidenceDoc `yaml:"evidence"`
	Source    string        `yaml:"source"`
	IntentID  string        `yaml:"intent_id"`
	Processed bool          `yaml:"processed"`
	CreatedAt time.Time     `yaml:"created_at"`
}

type evidenceDoc struct {
	Type string `yaml:"type"`
	Ref  string `yaml:"ref"`
}

func observationDocOf(o *forge.Observation) observationDoc {
	d := observationDoc{
		Content: o.Content, Evidence: []evidenceDoc{}, Source: string(o.Source),
		IntentID: string(o.IntentID), Processed: o.Processed, CreatedAt: o.CreatedAt.UTC(),
	}
	for _, e := range o.Evidence {
		d.Evidence = append(d.Evidence, evidenceDoc{string(e.Type), e.Ref})
	}
	return d
}

func observationDocs(list []forge.Observation) []observationDoc {
	docs := []observationDoc{}
	for i := range list {
		docs = append(docs, observationDocOf(&list[i]))
	}
	return docs
}
