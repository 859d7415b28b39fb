package verdict

import "github.com/pfl-forge/pfl-forge"

// Names of the trials of a report: what the verify commands ran on to find out whose fault a failure is.
const (
	// TrialChange is the change on the tip of the base branch.
	TrialChange = "change"
	// TrialBase is the tip without the change.
	TrialBase = "base"
	// TrialAlone is the change on the base that it was made on.
	TrialAlone = "alone"
)

// Fault says whose fault it is that verify commands failed.
type Fault string

// The faults.
const (
	// NoFault: nothing failed.
	NoFault Fault = ""
	// FaultOfChange: it fails with the change and passes without it, be it only now and then.
	FaultOfChange Fault = "change"
	// FaultOfCheck: the command gives both answers on the same tree, and fails without the change, too.
	FaultOfCheck Fault = "check"
	// FaultOfBase: it fails without the change, each time.
	FaultOfBase Fault = "base"
	// FaultOfBoth: the change passes where it was made, and the base passes; together they fail.
	FaultOfBoth Fault = "combination"
)

// Blame returns whose fault it is that a change, whose tree is given, did not pass, by the trials of its report. What the
// report itself says is believed only so far: a change passed if nothing failed, or if it passed in a trial and the check failed
// without it. So no change gets anywhere by making a check fail now and then.
func Blame(r *forge.VerifyReport, tree string) Fault {
	if r == nil || r.Passed && len(r.Trials) == 0 {
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
	return firstFailure(r.Trials)
}

// faultOf returns whose fault it is by trials alone.
func faultOf(trials []forge.CheckRun, tree string) Fault {
	command := firstFailure(trials)
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
	// A pass of the change is needed, because it may be merged, and a failure without it, because
	// otherwise a change could bring a test that fails every second time.
	case change.passed > 0 && base.failed > 0:
		return FaultOfCheck
	// One failure of the base could be that of a flaky check.
	case change.passed == 0 && base.failed > 1 && base.failed == base.runs:
		return FaultOfBase
	case change.passed == 0 && base.runs > 0 && base.passed == base.runs && alone.passed > 0:
		return FaultOfBoth
	}
	return FaultOfChange
}

// firstFailure returns the command that failed first; empty if none did.
func firstFailure(trials []forge.CheckRun) string {
	for i := range trials {
		if !trials[i].Passed {
			return trials[i].Command
		}
	}
	return ""
}

// answers are the results of the trials of one kind.
type answers struct{ runs, passed, failed int }

// tally counts the trials of a kind that passed, and those in which a command failed. One that failed
// at another command counts as neither.
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
