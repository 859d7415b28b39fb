package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// afterFailure is what follows an attempt that failed.
type afterFailure int

const (
	tryAgain    afterFailure = iota // after a pause that doubles, as often as the policy allows
	tryLater                        // the same, with a pause that a busy model needs
	waitForIt                       // at a limit: another agent, or wait until its reset
	carryOn                         // at once, and it counts for nothing
	newSession                      // as tryAgain, in another conversation
	raiseBudget                     // with more money, or a person
	askPerson                       // trying again cannot help before a person has acted
)

// failureRule is what the flow does about one reason. keep: the next attempt
// goes on in the same conversation and tree. tell: it can do better for knowing
// why the last one failed.
type failureRule struct {
	then       afterFailure
	keep, tell bool
}

// failureRules has a rule for every reason.
var failureRules = map[forge.FailureReason]failureRule{
	forge.FailTimeout:       {then: tryAgain, keep: true, tell: true},
	forge.FailIdle:          {then: tryAgain, keep: true, tell: true},
	forge.FailOutputLimit:   {then: tryAgain, keep: true, tell: true},
	forge.FailCrashed:       {then: tryAgain, keep: true, tell: true},
	forge.FailMaxTurns:      {then: tryAgain, keep: true, tell: true},
	forge.FailInvalidOutput: {then: tryAgain, keep: true, tell: true},
	forge.FailKilled:        {then: tryAgain, keep: true},
	forge.FailInterrupted:   {then: carryOn, keep: true},
	forge.FailRepository:    {then: tryAgain, keep: true},
	forge.FailUnsafe:        {then: tryAgain, tell: true},
	forge.FailOverloaded:    {then: tryLater, keep: true},
	forge.FailRateLimited:   {then: waitForIt, keep: true},
	forge.FailQuota:         {then: waitForIt, keep: true},
	forge.FailLostSession:   {then: newSession, keep: true},
	forge.FailPromptTooLong: {then: newSession, keep: true},
	forge.FailBudget:        {then: raiseBudget, keep: true},
	forge.FailRefused:       {then: askPerson},
	forge.FailAuth:          {then: askPerson, keep: true},
	forge.FailMissingCLI:    {then: askPerson},
	forge.FailCLITooOld:     {then: askPerson},
	forge.FailSandbox:       {then: askPerson},
	forge.FailConfig:        {then: askPerson},
}

const (
	// busyFactor is how much longer than after other errors a busy model is left alone.
	busyFactor = 30
	// blindPark is the pause at a limit whose reset nobody told.
	blindPark = 30 * time.Minute
	// longestPark is how far off a reset may be that is still waited for.
	longestPark = 8 * 24 * time.Hour
	// maxParks bounds the waits of one step in a row.
	maxParks = 50
)

// failed takes an attempt that did not do its job: try again after a pause,
// wait for a limit's reset, or give up. t is nil for steps of the whole intent.
func (s *Intent) failed(t *task, r *forge.Result) {
	step := r.Attempt.Step
	rule := failureRules[r.Failure().Reason]
	s.remember(t, r, rule)
	st, id := &s.analyze, forge.TaskID("")
	if t != nil {
		st, id = t.state(step), t.ID
	}
	then := rule.then
	if s.isHopeless(then, st, r) {
		then = askPerson
	}
	switch {
	case then == carryOn:
		if makes(step) {
			t.Attempts--
		}
		s.adjust(ruleInterrupted, id, "%s", firstLine(r.Failure().Message))
		s.goOn(t, step)
	case then == raiseBudget:
		s.adjust(ruleMoreMoney, id, "$%.2f spent by this call", r.Usage.CostUSD)
		s.goOn(t, step)
	case then == waitForIt:
		st.parks++
		s.atLimit(t, st, r)
	case then == askPerson && r.Failure().Reason == forge.FailBudget && !s.refreshing:
		s.broke(r.Attempt, r.Failure().Message)
	case then == askPerson || st.errors >= s.policy.MaxAgentRetries:
		why := fmt.Sprintf("%s: %s", r.Failure().Reason, r.Failure().Message)
		if st.errors > 0 {
			why = fmt.Sprintf("%s (after %d attempts)", why, st.errors+1)
		}
		s.giveUp(t, step, why)
	default:
		s.tryAgain(then, st, r)
	}
}

// isHopeless reports whether more money, or waiting, cannot help.
func (s *Intent) isHopeless(then afterFailure, st *stepState, r *forge.Result) bool {
	switch then {
	case raiseBudget:
		return r.Attempt.Task == "" && s.refreshing || r.Usage.CostUSD <= 0 || !s.draws()
	case waitForIt:
		return r.Failure().Until.Sub(s.now) > longestPark || st.parks >= maxParks
	default:
		return false
	}
}

// tryAgain repeats a step after a pause.
func (s *Intent) tryAgain(then afterFailure, st *stepState, r *forge.Result) {
	pause := s.policy.RetryBackoff << st.errors
	if then == tryLater {
		pause *= busyFactor
	}
	st.errors++
	name := ruleRetryAgent
	if then == newSession {
		name = ruleNewSession
	}
	s.adjust(name, r.Attempt.Task, "%s: %s", r.Failure().Reason, firstLine(r.Failure().Message))
	s.park(r.Attempt.Task, r.Attempt.Step, s.now.Add(pause))
}

// remember notes what the next attempt can build upon.
func (s *Intent) remember(t *task, r *forge.Result, rule failureRule) {
	talk := s.talkOf(t, r.Attempt.Step)
	if costs(r.Attempt.Step) {
		talk.heardOf(r.Session)
		if rule.then == newSession {
			s.begin(talk, r.Attempt.Task, r.Attempt.Step)
		}
	}
	if !makes(r.Attempt.Step) {
		return
	}
	t.replica, t.goOn = r.Replica, rule.keep
	if rule.tell {
		t.feedback = r.Failure().Message
	}
}

// draws reports whether calls of the intent draw on a budget.
func (s *Intent) draws() bool {
	return s.charged(&forge.Command{Attempt: forge.Attempt{Step: forge.StepAnalyze}})
}

// givesUp reports whether trying again cannot help before a person has acted.
func givesUp(r forge.FailureReason) bool { return failureRules[r].then == askPerson }

// goOn issues a step once more, at once.
func (s *Intent) goOn(t *task, step forge.Step) {
	switch {
	case t != nil:
		s.again(t, step)
	case s.refreshing:
		s.refresh()
	default:
		s.startStep()
	}
}

func (s *Intent) giveUp(t *task, step forge.Step, why string) {
	switch {
	case step == forge.StepSummarize:
		s.summarizePlainly(t, why)
	case t != nil:
		s.failTask(t, fmt.Sprintf("%s: %s", step, why))
	case s.refreshing:
		s.refreshing = false
		s.analyze.worked()
		s.stillBroke("the policy could not be read: " + why)
	default:
		s.adjust(ruleTaskFailed, "", "%s: %s", step, why)
		s.reason = fmt.Sprintf("%s: %s", step, why)
		s.finish(forge.StatusError)
	}
}

// avoided is an agent at a limit.
type avoided struct {
	agent string
	until time.Time
}

// avoided lists the agents that are at a limit now.
func (s *Intent) avoided() []string {
	var names []string
	for _, a := range s.avoid {
		if a.until.After(s.now) {
			names = append(names, a.agent)
		}
	}
	return names
}

// atLimit turns to another agent, or waits for the reset.
func (s *Intent) atLimit(t *task, st *stepState, r *forge.Result) {
	f, step, id := r.Failure(), r.Attempt.Step, r.Attempt.Task
	until := f.Until
	if !until.After(s.now) {
		if f.Reason == forge.FailRateLimited {
			until = s.now.Add(s.policy.RetryBackoff * busyFactor << min(st.parks-1, 5))
		} else {
			until = s.now.Add(blindPark)
		}
	}
	if r.Agent != "" {
		again := slices.Contains(s.avoided(), r.Agent)
		s.avoid = slices.DeleteFunc(slices.Clone(s.avoid), func(a avoided) bool {
			return a.agent == r.Agent || !a.until.After(s.now)
		})
		s.avoid = append(s.avoid, avoided{agent: r.Agent, until: until})
		// Before its policy is known, a project may have others.
		if f.Reason == forge.FailQuota && !again && (len(s.avoid) <= s.policy.Fallbacks || !s.known) {
			s.adjust(ruleFallback, id, "%s is at its limit until %s", r.Agent, until.UTC().Format(time.RFC3339))
			s.otherAgent(t, step)
			return
		}
		for _, a := range s.avoid {
			if a.until.Before(until) {
				until = a.until // the first that is free again
			}
		}
	}
	s.adjust(rulePark, id, "%s until %s", f.Reason, until.UTC().Format(time.RFC3339))
	s.park(id, step, until)
}

// otherAgent repeats a step with whoever is not at a limit. It knows nothing of
// the conversation so far.
func (s *Intent) otherAgent(t *task, step forge.Step) {
	if t == nil {
		step = s.step
	}
	s.begin(s.talkOf(t, step), taskID(t), step)
	s.goOn(t, step)
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
	t := s.task(forge.TaskID(id))
	if kind == "claim" {
		s.reclaim(t, key)
	} else {
		s.goOn(t, forge.Step(step))
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
		s.owe(c.Attempt)
		t.implement.claim++
		t.replica = ""
		next := s.command(t, c.Attempt.Step, &t.implement)
		next.BudgetUSD = c.BudgetUSD
		s.open.issue(&s.eff, next)
		return
	}
}
