package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Names of the trials of a report: what the verify commands ran on to find out
// whose fault a failure is.
const (
	// TrialChange is the change on the tip of the base branch.
	TrialChange = "change"
	// TrialBase is the tip without the change.
	TrialBase = "base"
	// TrialAlone is the change on the base that it was made on.
	TrialAlone = "alone"
)

// Enough is how often a change that failed once has to pass on the same tree,
// without another failure, to be taken for one that passes: a check that fails now
// and then costs it no attempt, though it was not seen to fail without the change.
// One that makes a check fail every second time gets there once in eight times.
const Enough = 3

// maxTrialOutput bounds the output of a run that TrialOf returns, in bytes; the end is kept.
const maxTrialOutput = 1 << 10

// Fault says whose fault it is that verify commands failed.
type Fault string

// The faults.
const (
	// NoFault: nothing failed.
	NoFault Fault = ""
	// FaultOfChange: it fails with the change and passes without it, be it only now and then.
	FaultOfChange Fault = "change"
	// FaultOfCheck: the command gives both answers on the same tree, and fails
	// without the change, too, or so seldom that nothing speaks against the change.
	FaultOfCheck Fault = "check"
	// FaultOfBase: it fails without the change, each time.
	FaultOfBase Fault = "base"
	// FaultOfBoth: the change passes where it was made, and the base passes; together they fail.
	FaultOfBoth Fault = "combination"
)

// Blame returns whose fault it is that a change, whose tree is given, did not pass,
// by the trials of its report. What the report itself says is believed only so far:
// a change passed if nothing failed, or if it passed in a trial and the check
// failed without it, or if it failed once and passed as often as Enough says. So a
// change gets nowhere by making a check fail now and then, but where that is rare.
func Blame(r *forge.VerifyReport, tree string) Fault {
	if r == nil || r.Passed && (len(r.Trials) == 0 || steady(r.Trials, tree)) {
		return NoFault
	}
	fault := faultOf(r.Trials, tree)
	if r.Passed != (fault == FaultOfCheck) { // they contradict each other
		return FaultOfChange
	}
	return fault
}

// Flaky returns the command that gave both answers; empty unless the check is to blame.
func Flaky(r *forge.VerifyReport, tree string) string {
	if Blame(r, tree) != FaultOfCheck {
		return ""
	}
	return FirstFailure(r.Trials)
}

// steady reports whether trials are nothing but passes of a tree, and enough of them.
func steady(trials []forge.CheckRun, tree string) bool {
	for i := range trials {
		if t := &trials[i]; t.Name != TrialChange || t.Tree != tree || !t.Passed {
			return false
		}
	}
	return len(trials) >= Enough
}

// Unsteady reports whether trials show a change that makes a check fail now and then: the
// change gave both answers, and not just once the bad one, and nothing else ever failed.
func Unsteady(trials []forge.CheckRun) bool {
	command := FirstFailure(trials)
	change, base := tally(trials, TrialChange, command), tally(trials, TrialBase, command)
	return change.passed > 0 && change.failed > 0 && base.failed == 0 && !change.rarely()
}

// Recall returns a report on a change together with what earlier trials of the same
// patch have shown. One that was unsteady passes only if the check is found to fail
// without it, or if it passes often enough in a row: one more pass says nothing new.
func Recall(tried []forge.CheckRun, r *forge.VerifyReport, tree string) *forge.VerifyReport {
	if r == nil || !r.Passed || !Unsteady(tried) || steady(r.Trials, tree) {
		return r
	}
	out := *r
	out.Trials = make([]forge.CheckRun, 0, len(tried)+len(r.Trials)+1)
	for _, t := range tried {
		if t.Name == TrialChange {
			t.Tree = tree // the patch is the same; the base branch may have moved
		}
		out.Trials = append(out.Trials, t)
	}
	if len(r.Trials) == 0 {
		out.Trials = append(out.Trials, forge.CheckRun{Name: TrialChange, Tree: tree, Passed: true})
	}
	out.Trials = append(out.Trials, r.Trials...)
	if faultOf(out.Trials, tree) != FaultOfCheck {
		first := slices.IndexFunc(tried, func(t forge.CheckRun) bool { return !t.Passed })
		out.Passed, out.Command, out.Output = false, tried[first].Command, UnsteadyText(tried[first].Command, tried[first].Output)
	}
	return &out
}

// TrialOf returns the run of a change whose verify commands failed, as one of
// those that tell whose fault a failure is; nil if they did not fail. The
// report of a run that was made once has none of its own.
func TrialOf(c *forge.Rebase) *forge.CheckRun {
	if c.Verify == nil || c.Verify.Passed {
		return nil
	}
	run := &forge.CheckRun{ID: "t1", Name: TrialChange, Command: c.Verify.Command, Tree: c.Tree, Output: c.Verify.Output}
	if most := len(run.Output) - maxTrialOutput; most > 0 {
		run.Output = strings.ToValidUTF8(run.Output[most:], "")
	}
	for _, r := range c.Verify.Runs {
		run.Duration += r.Duration
	}
	return run
}

// PassOf returns the run of a change whose verify commands passed, as one of
// the base of the change that follows it; nil if they did not pass.
func PassOf(c *forge.Rebase) *forge.CheckRun {
	if c.Verify == nil || Failing(c.Verify) != "" {
		return nil
	}
	run := &forge.CheckRun{Name: TrialBase, Tree: c.Tree, Passed: true}
	for _, r := range c.Verify.Runs {
		run.Duration += r.Duration
	}
	return run
}

// Twice returns a change whose verify commands failed for the second time on the
// same tree, with both runs in its report; nil if they did not fail, or failed on
// another tree the first time. between is a pass of PassOf that was found after
// the first failure. It is one of the runs if it is of the tree that the change
// was put on: what failed before and after it fails by the change. It may be nil.
func Twice(first, between *forge.CheckRun, c *forge.Rebase) *forge.Rebase {
	second := TrialOf(c)
	if first == nil || second == nil || first.Tree != second.Tree {
		return nil
	}
	out, report := *c, *c.Verify
	report.Trials = []forge.CheckRun{*first}
	if between != nil && between.Tree == c.BaseTree {
		report.Trials = append(report.Trials, *between)
	}
	report.Trials = append(report.Trials, *second)
	for i := range report.Trials {
		report.Trials[i].ID = fmt.Sprintf("t%d", i+1)
	}
	out.Verify = &report
	return &out
}

// FailedTwice reports whether trials are those of Twice, of this tree.
func FailedTwice(trials []forge.CheckRun, tree string) bool {
	if len(trials) == 3 && PassedBetween(trials) != "" {
		trials = []forge.CheckRun{trials[0], trials[2]}
	}
	return len(trials) == 2 && !slices.ContainsFunc(trials, func(t forge.CheckRun) bool {
		return t.Name != TrialChange || t.Passed || t.Tree != tree || t.Command == ""
	})
}

// PassedBetween returns the tree of the base that passed between two failures
// of a change, by the trials of Twice; empty if none did.
func PassedBetween(trials []forge.CheckRun) string {
	if len(trials) != 3 || trials[1].Name != TrialBase || !trials[1].Passed {
		return ""
	}
	return trials[1].Tree
}

// Fails returns the command that trials show a change to be to blame for: it failed each
// time, twice at least, where the base branch without the change passed each time. It is
// empty if they do not show that of it, or if the change passes where it was made.
func Fails(trials []forge.CheckRun) string {
	command := FirstFailure(trials)
	change, base, alone := tally(trials, TrialChange, command), tally(trials, TrialBase, command), tally(trials, TrialAlone, command)
	if change.failed > 1 && change.failed == change.runs && base.runs > 0 && base.passed == base.runs && alone.passed == 0 {
		return command
	}
	return ""
}

// FailsAgain reports whether a patch that was to blame before, as tried shows,
// is so still: a command fails each time with it, and the base branch passes.
// Of the command that failed before, one run says so.
func FailsAgain(tried, trials []forge.CheckRun) bool {
	command := Fails(tried)
	if command != "" && Fails(trials) != "" {
		return true
	}
	change, base, alone := tally(trials, TrialChange, command), tally(trials, TrialBase, command), tally(trials, TrialAlone, command)
	return command != "" && change.failed > 0 && change.failed == change.runs && base.runs > 0 && base.passed == base.runs && alone.passed == 0
}

// UnsteadyText tells whoever repairs a change that it makes a command fail now
// and then, with the output of a failure.
func UnsteadyText(command, output string) string {
	return fmt.Sprintf("%q passes and fails on the same files with this change, and never failed without it. "+
		"Make what fails now and then dependable.\n%s", command, output)
}

// Passed returns which trial shows that the base branch, or a change on it,
// passes: that of the base, or of the change; empty if neither does.
func Passed(r *forge.VerifyReport, tree string) string {
	if r != nil {
		for i := range r.Trials {
			if t := &r.Trials[i]; t.Name == TrialBase && t.Passed {
				return TrialBase
			}
		}
	}
	if fault := Blame(r, tree); fault == NoFault || fault == FaultOfCheck {
		return TrialChange
	}
	return ""
}

// StillRed reports whether trials show that the base branch fails on exactly this
// tree, and the change with it on exactly that one: then there is nothing to run.
func StillRed(tried []forge.CheckRun, change, base string) bool {
	for i := range tried {
		if tried[i].Name == TrialBase && tried[i].Tree != base {
			return false
		}
	}
	return faultOf(tried, change) == FaultOfBase
}

// faultOf returns whose fault it is by trials alone.
func faultOf(trials []forge.CheckRun, tree string) Fault {
	command := FirstFailure(trials)
	change, base, alone := tally(trials, TrialChange, command), tally(trials, TrialBase, command), tally(trials, TrialAlone, command)
	if change.runs == 0 { // nothing was changed
		change = base
	}
	for i := range trials {
		if trials[i].Name == TrialChange && trials[i].Tree != tree {
			return FaultOfChange // a trial of something else
		}
	}
	switch {
	// A pass of the change is needed, because it may be merged, and a failure without it or a few
	// passes more, because otherwise a change could bring a test that fails every second time.
	case change.passed > 0 && base.failed > 0, change.rarely() && base.failed == 0:
		return FaultOfCheck
	// One failure of the base could be that of a flaky check.
	case change.passed == 0 && base.failed > 1 && base.failed == base.runs:
		return FaultOfBase
	case change.passed == 0 && base.runs > 0 && base.passed == base.runs && alone.passed > 0:
		return FaultOfBoth
	}
	return FaultOfChange
}

// FirstFailure returns the command that failed first; empty if none did.
func FirstFailure(trials []forge.CheckRun) string {
	for i := range trials {
		if !trials[i].Passed {
			return trials[i].Command
		}
	}
	return ""
}

// answers are the results of the trials of one kind.
type answers struct{ runs, passed, failed int }

// rarely reports whether there was one failure, and enough passes.
func (a answers) rarely() bool {
	return a.failed == 1 && a.passed >= Enough && a.runs == a.failed+a.passed
}

// tally counts the trials of a kind that passed, and those in which a command
// failed. One that failed at another command counts as neither: where an earlier
// command fails on the base, it is not known what this one would have said
// there, and where a later one does, this one passed but the trial did not.
func tally(trials []forge.CheckRun, of, command string) (a answers) {
	for i := range trials {
		t := &trials[i]
		if t.Name != of {
			continue
		}
		a.runs++
		switch {
		case t.Passed:
			a.passed++
		case t.Command == command:
			a.failed++
		}
	}
	return a
}
