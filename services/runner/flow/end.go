package flow

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/history"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// maxPastFiles bounds the files that the lesson of a run names.
const maxPastFiles = 30

// close writes the run's history and tells the project, which forgets
// everything that the intent held there. A person may still retry what failed.
func (s course) close(reflect bool) {
	s.Phase = control.Closed
	s.Dispatch.DropHeld()
	s.Obstacles.Held, s.Obstacles.Asks = nil, false
	h := s.History.End(s.now, s.ended())
	s.eff.Ended = true
	end := s.end()
	end.Past = history.Lesson(&h, s.Tasks.Files(maxPastFiles))
	end.Observed = rule.Last(h.Observations, history.MaxSent)
	end.Knowledge, end.Applied = s.Goal.Publish()
	if s.Intent.Source.Foreign() && s.Plan.Gate.Approved == nil && !s.Plan.Gate.Vouched {
		end.Knowledge = nil // nobody read these words, and other goals would be told them as findings
	}
	if reflect {
		h.Observations = nil
		h.StepResults, h.Adjustments = rule.Last(h.StepResults, history.MaxSent), rule.Last(h.Adjustments, history.MaxSent)
		end.Reflect = &forge.ReflectOn{Intent: s.Intent, History: h, Policy: s.Policy.Reflection}
	}
	s.sendEnd(end)
}

// correct tells the project and the history that a run that is over ended otherwise, if it did.
func (s course) correct(status forge.Status, reason string) {
	if status == s.Intent.Status {
		return
	}
	s.Reason = reason
	s.Intent.Status = status
	s.endOtherwise()
}

// endOtherwise corrects how the newest run ended.
func (s course) endOtherwise() {
	s.sendEnd(s.end())
	s.History.EndedOtherwise(s.ended())
}

// ended returns the facts that the record of the run needs.
func (s course) ended() history.Ended {
	return history.Ended{Intent: &s.Intent, Run: s.Run, Escalated: s.Escalate, Reason: s.Reason}
}

// end numbers the message about an end: a run that ended may end otherwise.
func (s course) end() *forge.RunEnded {
	s.Ends++
	return &forge.RunEnded{
		Run: s.Run, Number: s.Ends, Status: s.Intent.Status,
		SpentUSD: s.History.Usage.CostUSD, Parent: s.Intent.Parent, Unbilled: s.Dispatch.Unbilled,
	}
}

// sendEnd sends it in place of every other message: after its end, a run asks for nothing.
func (s course) sendEnd(end *forge.RunEnded) {
	s.Dispatch.Outbox.Messages = nil
	s.sendToProject(endKey, end.Number, false, forge.Event{Message: end})
}
