package facts

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// Why a simulated verify command fails. The rules see trials and have to find out;
// the first trial says in its output what is true, which only the checker reads.
const (
	Broken    = "the change is broken"
	Unsteady  = "the change makes the check fail now and then"
	Flaky     = "the check fails now and then"
	Dishonest = "the change makes the check fail now and then, and the worker calls it passed"
	Red       = "the base fails"
	Apart     = "the change and what was merged meanwhile fail only together"
)

// CheckBlame returns an error if a decision names the wrong culprit: a task that is made
// again because a check fails now and then, or one that goes on although it is to blame. Two says
// that two changes may be made for a task: where the second fails only together with what was
// merged meanwhile, the first may go on, and be made again for a failure of its own.
func CheckBlame(rec *forge.Record, two bool) error {
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
		case (why == Flaky || why == Red || why == Apart && !two) && makes:
			return fmt.Errorf("%s is made again, at its own cost, although %s", task, why)
		case why != "" && why != Flaky && c.Attempt.Step == forge.StepReview:
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
