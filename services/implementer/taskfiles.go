package implementer

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// taskFile is .forge/task.yaml in a checkout, for the agent and for people who look
// into it.
type taskFile struct {
	ID         string   `yaml:"id"`
	Intent     string   `yaml:"intent"`
	Attempt    int      `yaml:"attempt"`
	Title      string   `yaml:"title"`
	Plan       string   `yaml:"plan,omitempty"`
	Steps      []string `yaml:"implementation_steps,omitempty"`
	Files      []string `yaml:"relevant_files,omitempty"`
	Context    string   `yaml:"context,omitempty"`
	Complexity string   `yaml:"complexity,omitempty"`
	Item       string   `yaml:"item,omitempty"`
	// Request is the intent's own text.
	Request      string `yaml:"request,omitempty"`
	Instructions string `yaml:"instructions,omitempty"`
	// Feedback is on the attempt before.
	Feedback string `yaml:"feedback,omitempty"`
	// Criteria are those of a goal.
	Criteria []string `yaml:"criteria,omitempty"`
	// Requirements are answered by a review, one by one.
	Requirements []string `yaml:"requirements,omitempty"`
}

// reviewFile is .forge/review.yaml in a checkout: the last review of the task.
type reviewFile struct {
	Head        string   `yaml:"head"`
	Verdict     string   `yaml:"verdict"`
	Issues      []string `yaml:"issues,omitempty"`
	Suggestions []string `yaml:"suggestions,omitempty"`
}

// writeTaskFiles writes task.yaml and, if there was a review, review.yaml. git
// ignores both.
func (w *work) writeTaskFiles() error {
	c := w.Command
	t, in := &c.Task, c.Implement()
	if err := w.writeYAML("task.yaml", taskFile{
		ID: string(t.ID), Intent: string(c.To.Intent), Attempt: c.Attempt.Number, Title: t.Title, Plan: t.Plan,
		Steps: t.Steps, Files: t.RelevantFiles, Context: t.Context, Complexity: string(t.Complexity), Item: t.Item,
		Request: c.Intent.Body, Instructions: c.Instructions, Feedback: in.Feedback,
		Criteria: t.Criteria, Requirements: t.Requirements,
	}); err != nil {
		return err
	}
	if len(in.Reviews) == 0 {
		return nil
	}
	r := in.Reviews[len(in.Reviews)-1]
	return w.writeYAML("review.yaml", reviewFile{
		Head: r.Head, Verdict: string(r.Verdict), Issues: r.Issues, Suggestions: r.Suggestions,
	})
}

// writeYAML writes a file below .forge in the checkout.
func (w *work) writeYAML(name string, v any) error {
	data, err := strictyaml.Encode(v)
	if err != nil {
		return fmt.Errorf("write .forge/%s: %w", name, err)
	}
	return w.checkout.WriteFile(name, data)
}
