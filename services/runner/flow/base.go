package flow

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/obstacle"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// awaitsBase reports whether a task that is about to have its change verified
// waits for a red base branch instead. The task that looks does not, nor do the
// iterations of a goal, which may be to mend it.
func (s access) awaitsBase(t *task.Task, step forge.Step) bool {
	c := s.Obstacles.Find(forge.GitBase, s.now)
	if c == nil || step != forge.StepRebase || !(task.Fault{Task: t}).MayAwait(s.strategy()) || slices.Contains(s.Obstacles.Looks, t.ID) {
		return false
	}
	if t.Reds == 0 {
		s.adjust(rule.RedBase, t.ID, "%s", obstacle.Words(c))
	}
	task.Fault{Task: t}.Await(obstacle.Words(c))
	s.holdForBase(t.ID, &forge.ObstacleReported{Failure: forge.Failure{Reason: forge.FailHeld}})
	return true
}

// baseRed has a task wait whose change was found to fail as the base branch does.
func (s access) baseRed(e task.Wait) {
	f := forge.Failure{Reason: forge.FailBase, Message: obstacle.RedWords(e.Base, e.Command)}
	s.Obstacles.Refused(forge.GitBase, &f, s.now)
	s.looked(e.Task)
	s.holdForBase(e.Task, &forge.ObstacleReported{Failure: f, Base: e.Base})
}

// holdForBase holds the verification of a task, and tells the project so.
func (s access) holdForBase(id forge.TaskID, m *forge.ObstacleReported) {
	s.Obstacles.Hold(obstacle.Hold{Task: id, Step: forge.StepRebase, Agent: forge.GitBase})
	s.reportBase(m)
}

// reportBase tells the project of the base branch.
func (s access) reportBase(m *forge.ObstacleReported) {
	s.Obstacles.Reports++
	m.Run, m.Number, m.Seen, m.Agent = s.Run, s.Obstacles.Reports, s.Obstacles.Number, forge.GitBase
	s.sendToProject(accountKey, m.Number, true, forge.Event{Message: m})
}

// lookNow has a task look at once, because a person says so.
func (s access) lookNow(id forge.TaskID) {
	s.drop(id)
	if !slices.Contains(s.Obstacles.Looks, id) {
		s.Obstacles.Looks = append(slices.Clip(s.Obstacles.Looks), id)
	}
}

// looked ends the look of a task.
func (s access) looked(id forge.TaskID) {
	s.Obstacles.Looks = slices.DeleteFunc(slices.Clone(s.Obstacles.Looks), func(l forge.TaskID) bool { return l == id })
}

// verified tells the project how a change did on a tip that is known to be red,
// unless it fails as the base does (baseRed).
func (s access) verified(t *task.Task, rb *forge.Rebase) {
	s.looked(t.ID)
	if t.Stage == task.Red || s.DecidedBy.Has(rules.AskedChecks) && verdict.Asked(rb.Verify) || s.Obstacles.Find(forge.GitBase, s.now) == nil {
		return
	}
	m := &forge.ObstacleReported{}
	if len(rb.Conflicts) == 0 && !rb.Unverified {
		m.Base, m.Passed = rb.Base, verdict.Passed(rb.Verify, rb.Tree)
	}
	s.answerLook(m)
}

// answerLook tells the project how a look ended, and whether another task waits still.
func (s access) answerLook(m *forge.ObstacleReported) {
	s.reportBase(m)
	if slices.ContainsFunc(s.Obstacles.Held, func(h obstacle.Hold) bool { return h.Agent == forge.GitBase }) {
		s.reportBase(&forge.ObstacleReported{Failure: forge.Failure{Reason: forge.FailHeld}})
	}
}

// reportEndedLooks tells the project of tasks that were to look, and have ended before
// they did: it would wait for their answer, and ask no other intent.
func (s access) reportEndedLooks() {
	for _, id := range s.Obstacles.Looks {
		if t := s.Tasks.Find(id); t != nil && !t.Ended() {
			return // this one answers
		}
		s.looked(id)
	}
	if s.Phase != control.Closed && s.Obstacles.Find(forge.GitBase, s.now) != nil {
		s.answerLook(&forge.ObstacleReported{})
	}
}
