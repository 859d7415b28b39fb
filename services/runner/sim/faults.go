package sim

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Why a simulated verify command fails. The rules see trials and have to find out;
// the first trial says in its output what is true, which only the checker reads.
const (
	broken    = "the change is broken"
	unsteady  = "the change makes the check fail now and then"
	flaky     = "the check fails now and then"
	dishonest = "the change makes the check fail now and then, and the worker calls it passed"
	red       = "the base fails"
	apart     = "the change and what was merged meanwhile fail only together"
)

// verify verifies a commit, well or badly, and says whether it passed in truth. meanwhile
// are the files that merged since the change was made, tried what is known of it.
func (w worker) verify(tree string, meanwhile []string, tried []forge.CheckRun) (report *forge.VerifyReport, passed bool) {
	report = &forge.VerifyReport{Passed: true, Command: "make test", Output: "it broke"}
	const change, base, alone = verdict.TrialChange, verdict.TrialBase, verdict.TrialAlone
	if verdict.Unsteady(tried) {
		report.Trials, passed = facts.Again(w.rng, tree, dishonest, tried)
		return report, passed
	}
	failed := verdict.FailedTwice(tried, tree)
	if !failed && !w.chance(7) {
		return report, true
	}
	faults := []string{broken, unsteady, flaky, flaky, dishonest, red, red, apart}
	if failed {
		faults = facts.Possible(tried, red, []string{broken, red, apart})
	}
	why := faults[w.rng.IntN(len(faults))]
	if why == apart && len(meanwhile) == 0 {
		why = broken
	}
	switch why {
	case broken:
		report.Trials = facts.Runs(tree, change+"-", change+"-", base+"+")
	case red:
		report.Trials = facts.Runs(tree, change+"-", change+"-", base+"-", base+"-")
	case apart:
		report.Trials = facts.Runs(tree, change+"-", change+"-", base+"+", alone+"+")
	case flaky:
		report.Trials = facts.Runs(tree, change+"-", change+"+", base+"+", base+"-")
		switch w.rng.IntN(3) {
		case 0:
			report.Trials = facts.Runs(tree, change+"-", change+"-", base+"-", base+"+", change+"+")
		case 1:
			report.Trials = facts.Runs(tree, change+"-", change+"+", change+"+", change+"+")
		}
	default:
		report.Trials = facts.Runs(tree, change+"-", change+"+", base+"+", base+"+", base+"+")
	}
	report.Trials = facts.Because(why, tried, report.Trials)
	report.Passed = why == flaky || why == dishonest
	return report, why == flaky
}

// checkBlame returns an error if a decision names the wrong culprit: a task that is made
// again because a check fails now and then, or one that goes on although it is to blame.
func (k *knowledge) checkBlame(rec *forge.Record) error {
	if len(rec.Events) > 1 {
		return nil
	}
	task, why := blamed(&rec.Events[0])
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		if c.Attempt.Task != task {
			continue
		}
		switch makes := c.Attempt.Step == forge.StepImplement || c.Attempt.Step == forge.StepExecute; {
		case (why == flaky || why == red || why == apart) && makes:
			return fmt.Errorf("%s is made again, at its own cost, although %s", task, why)
		case why != "" && why != flaky && c.Attempt.Step == forge.StepReview:
			return fmt.Errorf("%s goes to a review although %s", task, why)
		}
	}
	return nil
}

// blamed returns the task that an event is about, and why its change failed to
// verify; nothing if it did not.
func blamed(ev *forge.Event) (forge.TaskID, string) {
	var report *forge.VerifyReport
	var task forge.TaskID
	switch m := ev.Message.(type) {
	case *forge.Result:
		if rb := forge.As[*forge.Rebase](m.Output); rb != nil {
			task, report = m.Attempt.Task, rb.Verify
		}
	case *forge.MergeEnded:
		if m.Result != nil {
			task, report = m.Task, m.Result.Verify
		}
	default:
	}
	if report == nil || len(report.Trials) == 0 {
		return task, ""
	}
	return task, report.Trials[0].Output
}
