package sim

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// verify verifies a commit, well or badly, and says whether it passed in truth. meanwhile
// are the files that merged since the change was made, tried what is known of it.
func (w worker) verify(tree string, meanwhile []string, tried []forge.CheckRun) (report *forge.VerifyReport, passed bool) {
	report = &forge.VerifyReport{Passed: true, Command: "make test", Output: "it broke"}
	const change, base, alone = verdict.TrialChange, verdict.TrialBase, verdict.TrialAlone
	if verdict.Unsteady(tried) {
		report.Trials, passed = facts.Again(w.rng, tree, facts.Dishonest, tried)
		return report, passed
	}
	failed := verdict.FailedTwice(tried, tree)
	if !failed && !w.chance(7) {
		return report, true
	}
	faults := []string{facts.Broken, facts.Unsteady, facts.Flaky, facts.Flaky, facts.Dishonest, facts.Red, facts.Red, facts.Apart}
	if failed {
		faults = facts.Possible(tried, facts.Red, []string{facts.Broken, facts.Red, facts.Apart})
	}
	why := faults[w.rng.IntN(len(faults))]
	if why == facts.Apart && len(meanwhile) == 0 {
		why = facts.Broken
	}
	switch why {
	case facts.Broken:
		report.Trials = facts.Runs(tree, change+"-", change+"-", base+"+")
	case facts.Red:
		report.Trials = facts.Runs(tree, change+"-", change+"-", base+"-", base+"-")
	case facts.Apart:
		report.Trials = facts.Runs(tree, change+"-", change+"-", base+"+", alone+"+")
	case facts.Flaky:
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
	report.Passed = why == facts.Flaky || why == facts.Dishonest
	return report, why == facts.Flaky
}
