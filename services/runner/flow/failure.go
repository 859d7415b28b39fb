package flow

import (
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// failed takes an attempt that did not do its job: try again after a pause,
// wait for a limit's reset, or give up. t is nil for steps of the whole intent.
func (s *Intent) failed(t *task, r *forge.Result) {
	f := r.Failure
	step := r.Attempt.Step
	if step == forge.StepReflect {
		s.reflectFailed(r)
		return
	}
	st := &s.analyze
	id := forge.TaskID("")
	if t != nil {
		st, id = t.state(step), t.ID
	}
	if step == forge.StepImplement {
		t.session, t.replica = r.Session, r.Replica
		if instructive(f.Reason) {
			t.feedback = f.Message
		}
	}
	switch {
	case !f.Until.IsZero() && (f.Reason == forge.FailRateLimited || f.Reason == forge.FailQuota):
		s.adjust(rulePark, id, "%s until %s", f.Reason, f.Until.UTC().Format(time.RFC3339))
		s.park(id, step, f.Until)
	case givesUp(f.Reason) || st.errors >= s.policy.MaxAgentRetries:
		why := fmt.Sprintf("%s: %s", f.Reason, f.Message)
		if st.errors > 0 {
			why = fmt.Sprintf("%s (after %d attempts)", why, st.errors+1)
		}
		s.giveUp(t, step, why)
	default:
		if f.Reason == forge.FailLostSession {
			s.adjust(ruleNewSession, id, "%s", firstLine(f.Message))
			if t != nil {
				t.session = ""
			} else {
				s.session = ""
			}
		}
		pause := s.policy.RetryBackoff << st.errors
		st.errors++
		s.adjust(ruleRetryAgent, id, "%s: %s", f.Reason, firstLine(f.Message))
		s.park(id, step, s.now.Add(pause))
	}
}

// givesUp reports whether trying again cannot help before a person has acted.
func givesUp(r forge.FailureReason) bool {
	switch r {
	case forge.FailConfig, forge.FailAuth, forge.FailMissingCLI, forge.FailBudget:
		return true
	default:
		return false
	}
}

// instructive reports whether the next attempt can do better for knowing why
// the last one failed.
func instructive(r forge.FailureReason) bool {
	switch r {
	case forge.FailTimeout, forge.FailIdle, forge.FailOutputLimit, forge.FailCrashed, forge.FailInvalidOutput,
		forge.FailMaxTurns, forge.FailUnsafe:
		return true
	default:
		return false
	}
}

func (s *Intent) giveUp(t *task, step forge.Step, why string) {
	if t != nil {
		s.failTask(t, fmt.Sprintf("%s: %s", step, why))
		return
	}
	s.adjust(ruleTaskFailed, "", "%s: %s", step, why)
	s.reason = fmt.Sprintf("%s: %s", step, why)
	s.finish(forge.StatusError)
}

// park repeats a step at a point in time.
func (s *Intent) park(id forge.TaskID, step forge.Step, at time.Time) {
	s.open.arm(&s.eff, forge.Timer{To: s.key, Key: parkKey(id, step), At: at})
}

func parkKey(id forge.TaskID, step forge.Step) string { return fmt.Sprintf("park/%s/%s", id, step) }

// timer takes a timer that fired: a pause is over, or a replica did not begin.
func (s *Intent) timer(fired *forge.TimerFired) (forge.Decision, error) {
	key := fired.Key
	if !s.open.hasTimerAt(key, fired.At) {
		return ignore("no timer %q is set for %s", key, fired.At)
	}
	kind, rest, _ := strings.Cut(key, "/")
	id, rest, _ := strings.Cut(rest, "/")
	step, _, _ := strings.Cut(rest, "/")
	s.open.cancelTimer(key)
	if id == "" {
		s.startAnalysis()
		return forge.Applied, nil
	}
	t := s.task(forge.TaskID(id))
	switch {
	case kind == "claim":
		s.reclaim(t, key)
	case forge.Step(step) == forge.StepImplement:
		s.startImplement(t)
	default:
		s.issue(t, forge.Step(step), t.stage)
	}
	return forge.Applied, nil
}

// reclaim gives work that one replica was to do to any other. Its own late
// result is of an older claim and changes nothing.
func (s *Intent) reclaim(t *task, key string) {
	for _, c := range s.open.commands {
		if claimKey(c.Attempt) != key {
			continue
		}
		s.adjust(ruleReclaim, t.ID, "replica %q", c.Replica)
		s.open.closeAttempt(c.Attempt)
		s.eff.Cancels = append(s.eff.Cancels, c.Attempt)
		t.implement.claim++
		t.replica = ""
		s.open.issue(&s.eff, s.command(t, forge.StepImplement, &t.implement))
		return
	}
}
