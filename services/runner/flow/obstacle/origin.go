package obstacle

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

const (
	// saidAfter is how long an origin may be away before a person hears of it:
	// most outages are shorter.
	saidAfter = 15 * time.Second
	// firstPatience is how long the first worker waits for the origin. The next waits twice as
	// long: another replica may reach it at once, so the first must not hold all up for long.
	firstPatience = 2 * time.Second
	// longestPatience bounds that. A worker that waits looks every second or two, so that a longer
	// wait delays nothing, and a night without the origin fills no journal.
	longestPatience = time.Minute
)

// Away is the search for an origin that does not answer: one worker at a time
// waits for it, for all of the project. The zero value is of one that answers.
type Away struct {
	// Number counts the probes.
	Number int
	// Tries counts those of this outage.
	Tries int
	// For is the intent in whose name the newest is; empty if none is under way.
	For forge.IntentID
	// Waits are the intents that wait for the origin, in the order in which they said so.
	Waits []forge.IntentID
	// Said says that a person hears of it, by the first of them.
	Said bool
}

// wait notes that an intent waits.
func (a *Away) wait(id forge.IntentID) {
	if !slices.Contains(a.Waits, id) {
		a.Waits = append(slices.Clip(a.Waits), id)
	}
}

// ended forgets an intent whose run is over. A probe in its name is given up with its commands.
func (a *Away) ended(id forge.IntentID) {
	a.Waits = slices.DeleteFunc(slices.Clone(a.Waits), func(w forge.IntentID) bool { return w == id })
	if a.For == id {
		a.For = ""
	}
}

// asker returns the intent that tells a person, for all; empty if none does.
func (a *Away) asker() forge.IntentID {
	if !a.Said || len(a.Waits) == 0 {
		return ""
	}
	return a.Waits[0]
}

// Command returns the probe that is under way; nil if none is.
func (a *Away) Command(project forge.Key) *forge.Command {
	if a.For == "" {
		return nil
	}
	return &forge.Command{
		To: forge.Key{Project: project.Project, Intent: a.For}, Attempt: a.attempt(),
		Input: &forge.ProbeInput{Patience: min(firstPatience<<min(a.Tries-1, 10), longestPatience)},
	}
}

// attempt returns that of the newest probe.
func (a *Away) attempt() forge.Attempt {
	return forge.Attempt{Step: forge.StepProbe, Number: a.Number, Claim: 1}
}

// Begin begins a probe, if the origin does not answer and no other is under way,
// and reports whether it does. It is in the name of an intent that waits, or of
// the one whose merge does. Where none waits, the fact is forgotten instead: a
// probe for no intent would go on for ever, and the next step finds out as well.
func (a *Away) Begin(out *outbox.Messages, s *State, merge forge.IntentID, active []forge.IntentID) bool {
	if a.For != "" || !s.OriginAway() {
		return false
	}
	switch {
	case len(a.Waits) > 0:
		a.For = a.Waits[0]
	case merge != "":
		a.For = merge
	default:
		s.open()
		s.sendAll(out, active)
		return false
	}
	a.Number++
	a.Tries++
	return true
}

// OriginAway reports whether the origin does not answer.
func (s *State) OriginAway() bool { return s.find(forge.GitOrigin) != nil }

// Lost keeps that the origin did not answer a merge, and tells who has to know.
func (s *State) Lost(out *outbox.Messages, id forge.IntentID, f *forge.Failure, active []forge.IntentID, now time.Time) {
	s.Away.wait(id)
	if s.OriginAway() {
		return
	}
	s.Number++
	s.Closed = append(slices.Clip(s.Closed), closed(forge.GitOrigin, f, now))
	s.sendAll(out, active)
}

// Probed takes a worker's report on whether the origin answers. What is of an
// older probe says nothing of now.
func (s *State) Probed(out *outbox.Messages, r *forge.Result, active []forge.IntentID, now time.Time) (forge.Decision, error) {
	a := &s.Away
	c := s.find(forge.GitOrigin)
	if c == nil || a.For == "" || r.Attempt != a.attempt() || r.To.Intent != a.For || r.IsStart() {
		return rule.Ignore("attempt %s is not open", r.Attempt)
	}
	a.For = ""
	// A probe that ended otherwise, such as by the death of its worker, proves
	// nothing about the origin: another one follows.
	if f := r.Failure(); f == nil && r.Answers() || f != nil && f.Reason == forge.FailRepository {
		// A server that answers with a refusal is not away: each step reports its own refusal.
		s.open()
		s.sendAll(out, active)
		return forge.Applied, nil
	}
	// Whoever waits is told only when it has lasted: an intent cannot look at the clock
	// by itself, because only an event brings it the time, and none comes while it waits.
	if !a.Said && now.Sub(c.Since) >= saidAfter {
		a.Said = true
		s.Number++
		s.sendAll(out, active)
	}
	return forge.Applied, nil
}

// open notes that the origin answers. A step that was issued before and says
// otherwise is out of date.
func (s *State) open() {
	s.Number++
	s.Opened = s.Number
	s.Closed = slices.DeleteFunc(slices.Clone(s.Closed), func(c forge.Obstacle) bool { return c.Agent == forge.GitOrigin })
	s.Away = Away{Number: s.Away.Number}
}
