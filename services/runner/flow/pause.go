package flow

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// pauses says what is paused, and by whom.
type pauses struct {
	person  bool   // the intent, by a person
	project int    // number of the project's newest pause
	over    int    // number of the project's newest pause that is over
	reason  string // of the newest by a person
	tasks   map[forge.TaskID]bool
}

func (p *pauses) whole() bool { return p.person || p.project > p.over }

// why says why the intent is paused, with a person's own pause first.
func (p *pauses) why() string {
	if p.project > p.over && !p.person {
		return forge.ProjectPaused // an intent that came later was not told
	}
	return p.reason
}

// holds reports whether a step of a task, or with no task of the whole intent, is
// not to be issued now.
func (s *Intent) holds(id forge.TaskID) bool { return s.pauses.whole() || s.pauses.tasks[id] }

func (s *Intent) pause(p *forge.Pause) (forge.Decision, error) {
	next := s.pauses
	switch {
	case p.Number > 0 && p.Number <= max(next.project, next.over):
		return ignore("pause %d of the project is known", p.Number)
	case p.Number > 0:
		next.project = p.Number
	case s.phase == phaseClosed:
		return refuse("the intent is %s already", s.intent.Status)
	case p.Task == "" && next.person:
		return ignore("the intent is paused already")
	case p.Task == "":
		next.person = true
	default:
		t := s.task(p.Task)
		switch {
		case t == nil:
			return refuse("the intent has no task %q", p.Task)
		case t.ended():
			return refuse("task %s is %s already", t.ID, t.Status)
		case next.tasks[p.Task]:
			return ignore("the task is paused already")
		}
		next.tasks = with(next.tasks, p.Task, true)
	}
	if p.Number == 0 {
		next.reason = p.Reason
	}
	s.pauses = next
	if s.phase != phaseClosed {
		s.adjust(rulePause, p.Task, "%s", p.Reason)
		s.holdBack()
	}
	return forge.Applied, nil
}

// holdBack stops what must not go on. Each step is made ready to be issued again,
// from where it stops.
func (s *Intent) holdBack() {
	var stopped []forge.Attempt
	for _, a := range s.open.attempts() {
		if !s.holds(a.Task) || s.refreshing && a.Task == "" {
			continue
		}
		s.withdrawAttempt(a)
		if t := s.task(a.Task); t != nil && makes(a.Step) {
			t.goOn = true
			t.Attempts--
		}
		stopped = append(stopped, a)
	}
	for _, tm := range slices.Clone(s.open.timers) {
		if a, ok := parked(tm.Key); ok && s.holds(a.Task) && (!s.refreshing || a.Task != "") {
			s.open.cancelTimer(tm.Key)
			stopped = append(stopped, a)
		}
	}
	var unpaid []forge.Command
	for i := range s.unfunded {
		if c := s.unfunded[i].command; s.holds(c.Attempt.Task) {
			c.BudgetUSD = 0
			unpaid = append(unpaid, c)
		}
	}
	s.dropUnfunded(func(a forge.Attempt) bool { return s.holds(a.Task) })
	s.held = append(slices.Clip(s.held), unpaid...)
	for _, a := range stopped {
		s.goOn(s.task(a.Task), a.Step)
	}
	s.settle()
	s.fund()
}

// parked reads the key of a timer that repeats a step.
func parked(key string) (forge.Attempt, bool) {
	kind, rest, _ := strings.Cut(key, "/")
	task, step, _ := strings.Cut(rest, "/")
	return forge.Attempt{Task: forge.TaskID(task), Step: forge.Step(step)}, kind == "park"
}

func (s *Intent) resume(r *forge.Resume) (forge.Decision, error) {
	next := s.pauses
	switch {
	case r.Number > 0 && r.Number <= next.over:
		return ignore("the end of pause %d is known", r.Number)
	case r.Number > 0:
		next.over = r.Number
	case s.phase == phaseClosed && r.Task != "", r.Task != "" && !next.tasks[r.Task]:
		return refuse("task %q is not paused", r.Task)
	case r.Task != "":
		next.tasks = with(next.tasks, r.Task, false)
	case s.phase == phaseClosed:
		return refuse("the intent is %s already", s.intent.Status)
	case !next.person && next.project > next.over:
		return refuse("the whole project is paused; go on with it: pfl-forge resume --all")
	case !next.person && len(next.tasks) == 0:
		return refuse("the intent is not paused")
	default:
		next.person, next.tasks = false, nil
	}
	s.pauses = next
	if s.phase != phaseClosed {
		s.adjust(ruleResume, r.Task, "")
		s.letGo()
	}
	return forge.Applied, nil
}

// letGo issues what is not held back any more.
func (s *Intent) letGo() {
	list := s.held
	s.held = nil
	for _, c := range list {
		s.send(c)
	}
}

// dropHeld forgets commands that are not to be issued any more.
func (s *Intent) dropHeld(which func(forge.Attempt) bool) {
	s.held = slices.DeleteFunc(slices.Clone(s.held), func(c forge.Command) bool { return which(c.Attempt) })
}

// stoppedAt notes where an attempt stopped that a pause withdrew, so that it goes on
// there, and reports whether it did.
func (s *Intent) stoppedAt(r *forge.Result) bool {
	i := slices.IndexFunc(s.held, func(c forge.Command) bool {
		return c.Attempt.Task == r.Attempt.Task && c.Attempt.Step == r.Attempt.Step
	})
	if i < 0 {
		return false
	}
	s.held = slices.Clone(s.held)
	c, t := &s.held[i], s.task(r.Attempt.Task)
	talk := s.talkOf(t, c.Attempt.Step)
	talk.heardOf(r.Session)
	talk.in(c)
	if t != nil && makes(c.Attempt.Step) {
		c.Replica, t.replica = r.Replica, r.Replica
	}
	return true
}

func with(m map[forge.TaskID]bool, id forge.TaskID, on bool) map[forge.TaskID]bool {
	next := map[forge.TaskID]bool{}
	for k := range m {
		if m[k] {
			next[k] = true
		}
	}
	delete(next, id)
	if on {
		next[id] = true
	}
	return next
}
