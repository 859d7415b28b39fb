package goal

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Loop returns the part of a command that describes the goal. A rebase has none.
func (g Strategy) Loop(t *task.Task, step forge.Step) forge.GoalContext {
	l := forge.GoalContext{
		Iteration: len(g.Iterations), Left: g.Options.Iterations() - g.Used, Criteria: t.Criteria,
		Summaries: g.summaries(g.Options.History()),
	}
	if step == forge.StepJudge {
		l.Criteria, _ = verdict.Texts(t.Criteria, t.Checks)
		l.Summaries = rule.Last(l.Summaries, 1)
	} else {
		l.Knowledge = slices.Concat(g.Known, rule.Last(g.Learned, maxTaught))
	}
	if step == forge.StepExecute {
		l.Judgment = g.lastJudgment()
	} else {
		l.Execution = g.Execution
	}
	return l
}

// Verified returns the report of the verify commands on the iteration's change, or on the base
// branch where nothing was changed.
func (Strategy) Verified(t *task.Task) *forge.VerifyReport { return verified(t) }

// summaries lists the newest ones, and before them as many of the newest that failed;
// oldest first.
func (s *State) summaries(most int) []forge.ExecutionSummary {
	var list []forge.ExecutionSummary
	recent, failed, size := 0, 0, 0
	for _, it := range slices.Backward(s.Iterations) {
		switch {
		case it.Summary == nil:
			continue
		case recent < most:
			recent++
		case failed < most && it.Summary.Result != forge.ExecutionSuccess:
			failed++
		default:
			continue
		}
		sum := *it.Summary
		sum.Metadata = forge.SummaryMetadata{ErrorType: sum.Metadata.ErrorType} // the rest is for people, and long
		if size += sizeOf(&sum); size > maxSummaries && len(list) > 0 {
			break
		}
		list = append(list, sum)
	}
	slices.Reverse(list)
	return list
}

// lastJudgment returns the newest judgment, or nil.
func (s *State) lastJudgment() *forge.Judgment {
	return (&forge.GoalView{Iterations: s.Iterations}).FinalJudgment()
}

// Reworded returns a criterion as it was asked for that the goal's task does not
// have in these words, although no question was asked; empty if there is none.
func Reworded(in *forge.Intent, t *task.Task) string {
	if len(in.Clarifications) > 0 {
		return ""
	}
	for _, c := range in.Criteria {
		if !slices.Contains(t.Criteria, c) {
			return c
		}
	}
	return ""
}

// Summary returns how far a goal is; before its intake (t is nil), by what was
// asked for.
func (s *State) Summary(in *forge.Intent, t *task.Task, closed bool) *forge.GoalSummary {
	if !in.IsGoal() {
		return nil
	}
	g := &forge.GoalSummary{Most: in.Goal.Iterations(), Criteria: len(in.Criteria), Status: s.status(in.Status, t, closed)}
	if t != nil {
		g.Iteration, g.Used, g.Criteria = len(s.Iterations), s.Used, len(t.Criteria)
		if j := s.lastJudgment(); j != nil {
			g.Met = met(j)
		}
	}
	return g
}

// status returns how a goal's run ended; empty while it goes on.
func (s *State) status(status forge.Status, t *task.Task, closed bool) forge.LoopStatus {
	switch {
	case !closed:
		return ""
	case status == forge.StatusDone:
		return forge.LoopCompleted
	case status == forge.StatusCancelled, status == forge.StatusRejected:
		return forge.LoopCancelled
	case t != nil && s.Maxed:
		return forge.LoopMaxIterations
	}
	return forge.LoopError
}

// View returns everything that is known of a goal. reason is why it ended otherwise
// than completed.
func (s *State) View(in *forge.Intent, t *task.Task, closed bool, reason string) *forge.GoalView {
	if !in.IsGoal() {
		return nil
	}
	v := &forge.GoalView{
		GoalSummary: *s.Summary(in, t, closed), Text: in.Criteria, Knowledge: slices.Clone(s.Learned), Applied: slices.Clone(s.Applied),
	}
	if t != nil {
		v.Text, v.Iterations = t.Criteria, slices.Clone(s.Iterations)
	}
	if v.Status != "" && v.Status != forge.LoopCompleted {
		v.Error = reason
	}
	return v
}
