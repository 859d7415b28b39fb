package document

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Claim is a requirement of a task or a criterion of a goal, with what the last verdict says of
// it. One that no verdict speaks of is not met, with no evidence and no confidence.
type Claim struct {
	// Number counts the requirements of a task, or the criteria of a goal, from 1.
	Number int `json:"number" yaml:"number"`
	// Text is the requirement or criterion as it was put.
	Text string `json:"text" yaml:"text"`

	// Met says that it is shown to be met: in the word of the reviewer or judge, and by evidence
	// that was found.
	Met bool `json:"is_met" yaml:"is_met"`
	// Confidence is the reviewer's or judge's, from 0 to 1.
	Confidence float64 `json:"confidence" yaml:"confidence"`

	// Note is the reviewer's or judge's own text.
	Note string `json:"note,omitempty" yaml:"note,omitempty"`

	// Unproven says why it does not count although it was said to be met.
	Unproven string `json:"unproven,omitempty" yaml:"unproven,omitempty"`
	// Evidence has the pieces that were cited, each with the result of its lookup.
	Evidence []Citation `json:"evidence" yaml:"evidence"`
	// Run is that of the command which decides the criterion; left out where a model answered.
	Run *Run `json:"run,omitempty" yaml:"run,omitempty"`
}

// Run is how a command ended that decides a criterion.
type Run struct {
	// Name is that of the project's check; left out for a command of the criterion's own.
	Name string `json:"name,omitempty" yaml:"name,omitempty"`
	// Command is the command line.
	Command string `json:"command" yaml:"command"`
	// Tree is the tree of the commit that it ran on.
	Tree string `json:"tree" yaml:"tree"`
	// ExitCode is -1 if it was ended because it overran a limit.
	ExitCode int `json:"exit_code" yaml:"exit_code"`
	// Duration is how long it ran, such as 1.2s.
	Duration string `json:"duration" yaml:"duration"`
	// Output is the end of what it printed.
	Output string `cut:"end" json:"output,omitempty" yaml:"output,omitempty"`
}

// Citation is one piece of evidence, with what code found of it.
type Citation struct {
	// Kind is command, file, diff or absence.
	Kind forge.CitationKind `json:"kind" yaml:"kind"`
	// Ref is path:line, path:from-to, the name or id of a run, or a path.
	Ref string `json:"ref" yaml:"ref"`
	// Quote is the text that stands there, or that must not.
	Quote string `json:"quote,omitempty" yaml:"quote,omitempty"`
	// Resolved says that it was found as it is cited.
	Resolved bool `json:"resolved" yaml:"resolved"`
	// Reason says why it was not.
	Reason string `json:"reason,omitempty" yaml:"reason,omitempty"`
	// Unchanged says that it was so before the change, too.
	Unchanged bool `json:"unchanged,omitempty" yaml:"unchanged,omitempty"`
}

// ClaimsOf returns claims as programs read them.
func ClaimsOf(claims []forge.Claim) []Claim {
	list := make([]Claim, len(claims))
	for i := range claims {
		list[i] = ClaimOf(&claims[i])
	}
	return list
}

// ClaimOf returns one claim.
func ClaimOf(c *forge.Claim) Claim {
	d := Claim{
		Number: c.Number, Text: c.Text, Met: c.Counts(), Confidence: c.Confidence, Note: c.Note, Unproven: c.Unproven,
		Evidence: make([]Citation, len(c.Evidence)),
	}
	for i, e := range c.Evidence {
		d.Evidence[i] = Citation(e)
	}
	if r := c.Run; r != nil {
		d.Run = &Run{Name: r.Name, Command: r.Command, Tree: r.Tree, ExitCode: r.ExitCode, Duration: r.Duration.String(), Output: r.Output}
	}
	return d
}

// Review is the verdict of one review of a task, on the commit that was its head then.
type Review struct {
	// Task is left out where the review stands with its task.
	Task forge.TaskID `json:"task,omitempty" yaml:"task,omitempty"`
	// At is when it was decided on, in UTC.
	At time.Time `json:"at,omitzero" yaml:"at,omitempty"`
	// Attempt is the implementation that was read, from 1, and Head its commit.
	Attempt int           `json:"attempt" yaml:"attempt"`
	Head    string        `json:"head"    yaml:"head"`
	Verdict forge.Verdict `json:"verdict" yaml:"verdict"`
	// Claims answer the requirements of the task. A recipe's check has none.
	Claims []Claim `json:"requirements" yaml:"requirements"`
	// Issues have to be resolved. Suggestions hold nothing back.
	Issues      []string `json:"issues,omitempty"      yaml:"issues,omitempty"`
	Suggestions []string `json:"suggestions,omitempty" yaml:"suggestions,omitempty"`
	// Agent made it; empty for the check of a recipe. Model is the one that it was asked for.
	Agent string `json:"agent,omitempty" yaml:"agent,omitempty"`
	Model string `json:"model,omitempty" yaml:"model,omitempty"`
	// Second says that it is the second reviewer's.
	Second bool `json:"second,omitempty" yaml:"second,omitempty"`
	// Checks are those that the reviewer asked for.
	Checks []Check `json:"checks,omitempty" yaml:"checks,omitempty"`
}

// ReviewOf returns a review without its task.
func ReviewOf(r *forge.Review) Review {
	return Review{
		At: r.CreatedAt.UTC(), Attempt: r.Attempt, Head: r.Head, Verdict: r.Verdict, Claims: ClaimsOf(r.Claims), Issues: r.Issues,
		Suggestions: r.Suggestions, Agent: r.By.Agent, Model: r.By.Model, Second: r.Second, Checks: ChecksOf(r.Asked),
	}
}

// ReviewsOf returns the reviews of a task, the oldest first.
func ReviewsOf(v *forge.View, id forge.TaskID) []Review {
	var list []Review
	for i := range v.Reviews {
		if r := &v.Reviews[i]; r.TaskID == id {
			list = append(list, ReviewOf(r))
		}
	}
	return list
}

// Check is one run of a command of the project on one tree, as programs read it.
type Check struct {
	// ID is unique among those of a commit.
	ID string `json:"id" yaml:"id"`
	// Name is that of the check in pfl-forge.yaml; left out for a command without one.
	Name    string `json:"name,omitempty" yaml:"name,omitempty"`
	Command string `json:"command"        yaml:"command"`
	// Tree is the tree that it ran on.
	Tree   string `json:"tree"   yaml:"tree"`
	Passed bool   `json:"passed" yaml:"passed"`
	// ExitCode is -1 if it was ended.
	ExitCode int `json:"exit_code" yaml:"exit_code"`
	// Output is the end of what it printed.
	Output  string  `cut:"end"      json:"output,omitempty" yaml:"output,omitempty"`
	Seconds float64 `json:"seconds" yaml:"seconds"`
}

// ChecksOf returns the documents of runs.
func ChecksOf(runs []forge.CheckRun) []Check {
	var list []Check
	for _, r := range runs {
		list = append(list, Check{r.ID, r.Name, r.Command, r.Tree, r.Passed, r.ExitCode, r.Output, r.Duration.Seconds()})
	}
	return list
}
