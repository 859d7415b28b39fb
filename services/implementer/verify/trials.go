package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/goals"
	"github.com/pfl-forge/pfl-forge/verdict"
)

const (
	// maxBaseTrials bounds the trials of the base for a check that gave both
	// answers on the change. A check that fails every third time passes as
	// often once in four times; then the change is taken for the cause.
	maxBaseTrials = 3
	// maxTrialTime is how long after the first failure a trial may begin that is not
	// the second one on the change: other changes wait for a merge that is under way.
	maxTrialTime = 45 * time.Minute
	// maxTrialOutput bounds the output of each trial that is reported, in bytes; the end is kept.
	maxTrialOutput = 1 << 10
)

// trials are the runs of the verify commands on a change that did not pass, on its parent and
// on the base that it was made on. They are facts, from which the rules find the fault
// (verdict.Blame). Each run has a fresh checkout and its own caches, so that no run influences
// another. All runs are reported, also those that decide nothing, so that a person sees them.
type trials struct {
	*jobs.Job
	checks []forge.Check
	began  time.Time
	// known are earlier trials of the same change.
	known []forge.CheckRun
	// command is the one that failed.
	command string
	list    []forge.CheckRun
}

// stillRed returns the report on a change whose parent is known to fail, and is the same still; nil
// if it is not. Nothing is run: a task that waits for the base branch to be mended looks often.
func stillRed(ctx context.Context, j *jobs.Job, c Change, known []forge.CheckRun) (*forge.VerifyReport, error) {
	if len(known) == 0 {
		return nil, nil //nolint:nilnil // no report is an answer
	}
	head, err := j.Store.Tree(ctx, c.Head)
	if err != nil {
		return nil, err
	}
	base, err := j.Store.Tree(ctx, j.Tip)
	if err != nil || !verdict.StillRed(known, string(head), string(base)) {
		return nil, err
	}
	return &forge.VerifyReport{Command: known[0].Command, Output: known[0].Output, Trials: known}, nil
}

// tried verifies a change. If a command fails, the same commit is verified once
// more before a fault is looked for, and it and its parent as often as it takes
// to tell a check that fails now and then from a change that makes it do so.
// The whole of the commands runs each time: what passes here may be merged.
func tried(ctx context.Context, j *jobs.Job, c Change, checks []forge.Check) (*forge.VerifyReport, error) {
	if c.Once {
		return jobs.VerifyGoal(ctx, j, c.Head, checks)
	}
	known := j.Command.Rebase().Tried
	if report, err := stillRed(ctx, j, c, known); report != nil || err != nil {
		return report, err
	}
	if report := c.Failed; report != nil {
		jobs.Say(j, fmt.Sprintf("not verified again: it failed twice in trials on this tree: %s", term.Line(report.Command)))
		t := &trials{Job: j, checks: checks, known: known, command: report.Command, list: report.Trials, began: time.Now()}
		again, err := t.accuse(ctx, c, report)
		if err != nil {
			return nil, err
		}
		return t.report(report, again), nil
	}
	report, err := jobs.VerifyGoal(ctx, j, c.Head, checks)
	if err != nil || report == nil || report.Passed && !verdict.Unsteady(known) {
		return report, err
	}
	t := &trials{Job: j, checks: checks, known: known, command: report.Command, began: time.Now()}
	if err := t.add(ctx, verdict.TrialChange, c.Head, report); err != nil {
		return nil, err
	}
	if report.Passed { // it was unsteady before: one more pass says nothing
		t.command = verdict.FirstFailure(known)
		err := t.confirm(ctx, c)
		report.Trials = t.list
		return report, err
	}
	again := report
	if !t.isTheSame() {
		again, err = t.run(ctx, verdict.TrialChange, c.Head)
		if err != nil {
			return nil, err
		}
	}
	if again.Passed {
		err = t.confirm(ctx, c)
	} else {
		again, err = t.accuse(ctx, c, again)
	}
	if err != nil {
		return nil, err
	}
	return t.report(report, again), nil
}

// Unchanged verifies the tip of the base branch itself: what a goal that has
// changed nothing is judged by.
func Unchanged(ctx context.Context, j *jobs.Job) (*forge.VerifyReport, error) {
	checks := goals.Checks(j.Command)
	report, err := jobs.VerifyGoal(ctx, j, j.Tip, checks)
	if err != nil || report == nil || report.Passed {
		return report, err
	}
	t := &trials{Job: j, checks: checks, command: report.Command, began: time.Now()}
	if err := t.add(ctx, verdict.TrialBase, j.Tip, report); err != nil {
		return nil, err
	}
	again, err := t.run(ctx, verdict.TrialBase, j.Tip)
	if err != nil {
		return nil, err
	}
	return t.report(report, again), nil
}

// confirm goes on after a change has passed that failed before on the same
// tree. It is verified until it has passed often enough; if it fails once more,
// or the rules do not know of that yet, only a failure without it excuses it.
func (t *trials) confirm(ctx context.Context, c Change) error {
	if !t.Command.Rebase().Settle && !t.Command.Merge().Settle {
		return t.excuse(ctx)
	}
	for passes := 1; passes < verdict.Enough; passes++ {
		if !t.inTime() {
			return nil
		}
		more, err := t.run(ctx, verdict.TrialChange, c.Head)
		if err != nil {
			return err
		}
		if !more.Passed {
			return t.excuse(ctx)
		}
	}
	return nil
}

// excuse looks for the failure of a command on the parent, after it gave both answers
// on the change. The parent has no file of the change, so nothing that the change
// does can make it fail. One failure is enough; without one the change is to blame.
func (t *trials) excuse(ctx context.Context) error {
	for n := 0; n < maxBaseTrials && t.inTime(); n++ {
		base, err := t.run(ctx, verdict.TrialBase, t.Tip)
		if err != nil {
			return err
		}
		if !base.Passed && base.Command == t.command {
			return nil // it fails without the change, too
		}
	}
	return nil
}

// accuse looks whether the parent passes, after the change failed twice, and the change where it
// was made. A parent that passed between the two failures is not run again. One that fails is
// run once more: red is only what fails each time. It returns the newest report on the change.
func (t *trials) accuse(ctx context.Context, c Change, again *forge.VerifyReport) (*forge.VerifyReport, error) {
	if verdict.PassedBetween(t.list) != "" {
		return again, t.alone(ctx, c)
	}
	base, err := t.run(ctx, verdict.TrialBase, t.Tip)
	if err != nil {
		return nil, err
	}
	if !base.Passed && base.Command == t.command {
		if base, err = t.run(ctx, verdict.TrialBase, t.Tip); err != nil || !base.Passed || !t.inTime() {
			return again, err
		}
		return t.run(ctx, verdict.TrialChange, c.Head) // the check fails now and then: it has one more chance
	}
	if base.Passed {
		err = t.alone(ctx, c)
	}
	return again, err
}

// alone looks whether the change passes where it was made, if its parent is another one by now.
func (t *trials) alone(ctx context.Context, c Change) error {
	if c.Alone == "" || t.isTheSame() || !t.inTime() {
		return nil
	}
	_, err := t.run(ctx, verdict.TrialAlone, c.Alone)
	return err
}

// isTheSame reports whether a recipe has made the same change again that was to blame, and the
// same command fails on it: that it fails is known, and whether the parent passes is left to see.
func (t *trials) isTheSame() bool {
	return t.Command.Intent.Recipe != "" && verdict.Fails(t.known) == t.command
}

// inTime reports whether there is time for another trial. What is not known when
// there is none left is the change's fault: it would be so without any trial.
func (t *trials) inTime() bool { return time.Since(t.began) < maxTrialTime }

// run runs the verify commands once more. On the change the checks of its goal
// follow, since it may be merged.
func (t *trials) run(ctx context.Context, of string, commit git.OID) (*forge.VerifyReport, error) {
	failed := t.command
	var report *forge.VerifyReport
	var err error
	switch of {
	case verdict.TrialChange:
		jobs.Say(t.Job, fmt.Sprintf("verify failed: %s; the same commit is verified once more", term.Line(failed)))
		report, err = jobs.VerifyGoal(ctx, t.Job, commit, t.checks)
	case verdict.TrialAlone:
		jobs.Say(t.Job, fmt.Sprintf("verify failed: %s; verifying the change where it was made, at %s", term.Line(failed), commit.Short()))
		report, err = t.Verify(ctx, commit)
	default:
		jobs.Say(t.Job, fmt.Sprintf("verify failed: %s; verifying the base branch without the change, at %s", term.Line(failed), commit.Short()))
		report, err = t.Verify(ctx, commit)
	}
	if err != nil {
		return nil, err
	}
	return report, t.add(ctx, of, commit, report)
}

// add notes a run.
func (t *trials) add(ctx context.Context, of string, commit git.OID, r *forge.VerifyReport) error {
	tree, err := t.Store.Tree(ctx, commit)
	if err != nil {
		return err
	}
	run := forge.CheckRun{
		ID: fmt.Sprintf("t%d", len(t.list)+1), Name: of, Command: r.Command, Tree: string(tree), Passed: r.Passed,
		Output: term.Last(r.Output, maxTrialOutput),
	}
	for _, c := range r.Runs {
		run.Duration += c.Duration
	}
	t.list = append(t.list, run)
	return nil
}

// report tells that the change passed, where the check is to blame, or else
// that it failed, as it did first. The one who has to repair a check that the
// change made unreliable is told so, because the output alone does not show it.
func (t *trials) report(first, again *forge.VerifyReport) *forge.VerifyReport {
	first.Trials, again.Trials = t.list, t.list
	if !again.Passed {
		return first
	}
	tree := t.list[0].Tree
	if verdict.Blame(verdict.Recall(t.known, again, tree), tree) == verdict.FaultOfCheck {
		return again
	}
	first.Output = verdict.UnsteadyText(first.Command, first.Output)
	return first
}
