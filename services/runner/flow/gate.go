package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// gate holds an intent that a person has to approve, and lets the others go on.
func (s *Intent) gate() {
	if why := s.needsApproval(); why != "" && !s.approved {
		if s.phase != phaseApproval {
			s.adjust(ruleAwaitApproval, "", "%s", why)
		}
		s.phase = phaseApproval
		s.reason = why
		return
	}
	s.intent.Status = forge.StatusApproved
	s.await()
}

// needsApproval says why a person has to approve, or nothing.
func (s *Intent) needsApproval() string {
	origin := s.intent.Origin.System
	switch {
	case !s.isPlanned():
		return ""
	case s.intent.Risk.Rank() > forge.RiskLow.Rank():
		return fmt.Sprintf("risk is %s", s.intent.Risk)
	case s.reworded() != "":
		return fmt.Sprintf("its criteria were put in other words, such as %q", firstLine(s.reworded()))
	case s.intent.Source == forge.SourceSystem && !s.vouched && !slices.Contains(s.policy.TrustedOrigins, origin):
		return fmt.Sprintf("it comes from %q, which may not run unapproved (policy.trusted_origins)", origin)
	}
	return ""
}

// maxPlannedFiles bounds what others are told of an intent's files.
const maxPlannedFiles = 100

// await waits for the intents that this one depends on, if any, and tells the
// lane the plan.
func (s *Intent) await() {
	p := forge.RunPlanned{Run: s.run, Plan: s.planSummary(), Budget: s.policy.Budget, Children: s.partIDs()}
	p.RelevantFiles = s.plannedFiles(maxPlannedFiles)
	var missing []string
	for i := range s.depends {
		if s.depends[i].status != forge.StatusDone {
			s.depends[i].status = ""
			p.DependsOn = append(p.DependsOn, s.depends[i].id)
			missing = append(missing, string(s.depends[i].id))
		}
	}
	s.tellLane("planned", false, forge.Event{Message: &p})
	if len(missing) == 0 {
		s.work()
		return
	}
	s.phase = phaseDepending
	s.adjust(ruleAwaitDependency, "", "%s", strings.Join(missing, ", "))
}

func (s *Intent) dependencyEnded(d *forge.DependencyEnded) (forge.Decision, error) {
	i := slices.IndexFunc(s.depends, func(x dependency) bool { return x.id == d.Intent })
	if s.phase != phaseDepending || d.Run != s.run || i < 0 || s.depends[i].status != "" {
		return ignore("the intent does not wait for %q", d.Intent)
	}
	switch {
	case len(d.Cycle) > 0:
		s.block(ruleCycle, "the intents wait for each other: "+joinIDs(d.Cycle, " -> "))
	case d.Status == "":
		s.block(ruleBlockDependency, fmt.Sprintf("it depends on %q, and there is no such intent", d.Intent))
	case d.Status != forge.StatusDone:
		s.depends[i].status = d.Status
		s.block(ruleBlockDependency, fmt.Sprintf("it depends on %q, which ended %s", d.Intent, d.Status))
	default:
		s.depends[i].status = d.Status
		if !slices.ContainsFunc(s.depends, func(x dependency) bool { return x.status != forge.StatusDone }) {
			s.work()
		}
	}
	return forge.Applied, nil
}

// block ends a run that cannot start its tasks.
func (s *Intent) block(rule, why string) {
	s.adjust(rule, "", "%s", why)
	for _, t := range s.tasks {
		if !t.ended() {
			s.endTask(t, forge.TaskFailed, why)
		}
	}
	s.reason = why
	s.finish(forge.StatusBlocked)
}
