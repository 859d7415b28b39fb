package flow_test

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// fire lets time pass until a timer that somebody still waits for.
func (s *script) fire() {
	slices.SortStableFunc(s.timers, func(a, b forge.Timer) int { return a.At.Compare(b.At) })
	for len(s.timers) > 0 {
		tm := s.timers[0]
		s.timers = s.timers[1:]
		s.now = tm.At
		before := s.out.Len()
		s.print("it is +%s: %s", s.now.Sub(s.start), tm.Key)
		if s.send(forge.Event{To: tm.To, Message: &forge.TimerFired{Key: tm.Key, At: tm.At}}) != forge.Ignored {
			return
		}
		kept := s.out.String()[:before]
		s.out.Reset()
		s.out.WriteString(kept)
	}
	s.print("no timer is set")
}

func (s *script) show(id forge.IntentID) {
	v := s.intents[id].View()
	sum := v.Summary
	s.print("%s %s, run %d, risk %q, waiting %q, %q", id, sum.Status, sum.Run, sum.Risk, sum.Waiting, sum.Activity)
	if sum.Reason != "" {
		s.print("reason: %s", sum.Reason)
	}
	for _, t := range v.Tasks {
		s.print("%s %s, attempts %d, commit %q %s", t.ID, t.Status, t.Attempts, t.Commit, t.Failure)
		if t.Write != nil {
			s.print("  writes %s: %q", t.Write.Path, t.Write.Content)
		}
		if t.Commit != "" {
			s.print("  changes %s to %s", t.Base, t.Head)
		}
	}
	for _, c := range sum.Children {
		s.print("child %s: %q", c.ID, c.Status)
	}
	for _, t := range sum.Tasks {
		for _, o := range t.Overlaps {
			s.print("%s does not merge with %s: %v", t.ID, o.TaskID, o.Files)
		}
	}
	if v.Audit != nil {
		s.print("audit: %s", v.Audit.Summary)
	}
	if v.Goal != nil {
		s.showGoal(v.Goal)
	}
	for _, o := range v.Observations {
		s.print("observed %s, read: %t", o.ID, o.Processed)
	}
	for _, h := range v.History {
		s.print("run %d: %s %s", h.Run, h.Outcome, h.FailureReason)
		for _, r := range h.StepResults {
			s.print("  %s %s #%d: %s", r.Step, r.TaskID, r.Attempt, r.Outcome)
		}
		for _, a := range h.Adjustments {
			s.print("  rule %s %s: %s", a.Rule, a.TaskID, a.Detail)
		}
	}
}
