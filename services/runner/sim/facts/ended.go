package facts

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// CheckTasks returns an error unless all tasks of an intent that ended have ended
// too, and are done if it is, and no change was made again by its journal that a retry has
// to go on with.
func CheckTasks(v *forge.View, journal []forge.Record) error {
	for _, t := range v.Tasks {
		if t.Status != forge.TaskDone && t.Status != forge.TaskFailed {
			return fmt.Errorf("task %s is %s although its intent is %s", t.ID, t.Status, v.Summary.Status)
		}
		if v.Summary.Status == forge.StatusDone && t.Status != forge.TaskDone {
			return fmt.Errorf("the intent is done although task %s is %s", t.ID, t.Status)
		}
	}
	return checkStands(v, journal)
}

// CheckGoal returns an error unless the goal stayed within its iterations, and completed exactly
// if every criterion is met. It is called when the goal's intent has ended, so a loop without a
// status is one that was forgotten.
func CheckGoal(g *forge.GoalSummary, status forge.Status) error {
	switch {
	case g.Used > g.Most:
		return fmt.Errorf("%d iterations of %d were used", g.Used, g.Most)
	case g.Status == "":
		return fmt.Errorf("it is %s, and its loop has not ended", status)
	case (g.Status == forge.LoopCompleted) != (status == forge.StatusDone):
		return fmt.Errorf("it is %s, and its loop %s", status, g.Status)
	case g.Status == forge.LoopCompleted && g.Met != g.Criteria:
		return fmt.Errorf("it is completed with %d of %d criteria met", g.Met, g.Criteria)
	}
	return nil
}

// OpenTwice returns a task with two open commands; empty if there is none. A task has one worker
// at a time: two would work on one checkout.
func OpenTwice(open []forge.Attempt) forge.TaskID {
	seen := map[forge.TaskID]bool{}
	for _, a := range open {
		if seen[a.Task] {
			return a.Task
		}
		seen[a.Task] = true
	}
	return ""
}

// DecisionOn returns the name of the attempt that a result decides on; empty if it
// only reports costs or a fact. open are the attempts that were issued and not
// withdrawn.
func DecisionOn(r *forge.Result, open map[forge.Attempt]bool) string {
	a := r.Attempt
	switch {
	case a.Step.Service() == "gateway":
		return "" // what was seen of a pull request is told by results of the attempt that opened it
	case a.Step != forge.StepMerge && !open[a]:
		return "" // it only tells its costs
	case a.Step != forge.StepMerge:
		a.Claim = 0
	case Merged(forge.As[*forge.MergeResult](r.Output)):
		return "" // a fact, whatever was decided: see checkCommits
	}
	return a.String() // the project repeats a merge as a new claim
}

// Merged reports whether a merge took place.
func Merged(i *forge.MergeResult) bool { return i != nil && i.Outcome == forge.MergeDone }

// CheckBlocked returns an error if an intent, whose journal is given, is still blocked by another
// one that is done. Rules before AbsentDependency left it so where the other did not exist yet.
func CheckBlocked(journal []forge.Record, others []forge.Key, summary func(forge.Key) *forge.Summary) error {
	last := &journal[len(journal)-1].Summary
	by := rules.First
	for i := len(journal) - 1; i >= 0 && journal[i].Summary.Status == forge.StatusBlocked; i-- {
		by = rules.Of(&journal[i])
	}
	because := "it depends on %q, which ended"
	if by.Has(rules.AbsentDependency) {
		because = "it depends on %q, which " // ended, or does not exist
	}
	for _, d := range others {
		if last.Status == forge.StatusBlocked && strings.HasPrefix(last.Reason, fmt.Sprintf(because, d.Intent)) && summary(d).Status == forge.StatusDone {
			return fmt.Errorf("%s is blocked by %s, which is done", last.Key.Intent, d.Intent)
		}
	}
	return nil
}
