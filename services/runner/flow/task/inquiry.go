package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// maxKept bounds the output of a check that stays with a review, in bytes: its end.
const maxKept = 1 << 10

// Inquiry holds the checks of the project that the reviewer of this moment asked for.
type Inquiry struct {
	// Wanted are the names of those that run now.
	Wanted []string
	// Runs are of those that have run for this review, in their order.
	Runs []forge.CheckRun
}

// Asked decides on what a reviewer asks for. The methods stand on a type of
// their own, which has no state.
type Asked struct{ *Task }

// Left returns for how many more checks the reviewer may ask. Each of them counts, whether or not
// it could run. So a review that would ask for ever comes to its end.
func (t Asked) Left(p *forge.Policy, in *forge.Intent) int {
	if in.Recipe != "" { // its exit code is a fact
		return 0
	}
	return max(p.MaxChecks-len(t.Inquiry.Runs), 0)
}

// ask takes a review that asks for checks in place of a verdict, and reports whether it
// does. Whoever asks for nothing that it may ask for has given its verdict.
func (t Asked) ask(x *Turn, asked []forge.CheckRun) bool {
	var names []string
	for i := range asked {
		name := asked[i].Name
		had := func(r forge.CheckRun) bool { return r.Name == name }
		if forge.CheckName.MatchString(name) && !slices.Contains(names, name) && !slices.ContainsFunc(t.Inquiry.Runs, had) {
			names = append(names, name)
		}
	}
	if names = names[:min(len(names), t.Left(x.Policy, x.Intent))]; len(names) == 0 {
		return false
	}
	t.Review.Worked()
	t.ReviewSession.Reported(t.ReviewSession.ID) // what they say is told in the same session
	t.Inquiry.Wanted = names
	x.Correct("asked for checks")
	t.step(x, Input{On: Wanted, Detail: strings.Join(names, ", ")})
	return true
}

// ran takes the runs of the checks, and goes on with the review. What is reported of
// another commit or tree, or was not asked for, is no run: then the review goes on with
// that.
func (t Asked) ran(x *Turn, rb *forge.Rebase) {
	t.Rebase.Worked()
	runs := slices.Clip(t.Inquiry.Runs)
	for _, name := range t.Inquiry.Wanted {
		run := t.runOf(rb, name)
		run.ID, run.Name = fmt.Sprintf("a%d", len(runs)+1), name
		runs = append(runs, run)
	}
	t.Inquiry = Inquiry{Runs: runs}
	t.step(x, Input{On: Ran})
}

// runOf returns the run of a check in a report.
func (t Asked) runOf(rb *forge.Rebase, name string) forge.CheckRun {
	c := t.Candidate
	if id := verdict.RunID(&forge.Check{Name: name}); rb.Head == t.Head && rb.Verify != nil {
		for _, r := range rb.Verify.Checks {
			if r.ID == id && r.Tree == rb.Tree && (c == nil || r.Tree == c.Tree) {
				return r
			}
		}
	}
	return forge.CheckRun{ExitCode: -1, Output: "it did not run on this commit"}
}

// kept returns the runs as they stay with the review: with the end of what
// those printed that did not pass.
func (t Asked) kept() []forge.CheckRun {
	runs := slices.Clone(t.Inquiry.Runs)
	for i := range runs {
		if r := &runs[i]; r.Passed {
			r.Output = ""
		} else {
			r.Output = strings.ToValidUTF8(r.Output[max(len(r.Output)-maxKept, 0):], "")
		}
	}
	return runs
}
