package reflection

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Bounds of the lists that a project keeps for its reflections.
const (
	// maxUnread bounds the observations that wait to be read.
	maxUnread = 300
	// maxRuns bounds the runs that wait to be reflected upon.
	maxRuns = 50
	// maxTogether bounds the runs that one reflection reads.
	maxTogether = 10
	// maxProposals bounds the proposals that are remembered.
	maxProposals = 500
	// maxKnown bounds those of them that a reflection is told of.
	maxKnown = 100
	// maxReports bounds the reports that are repeated after a crash.
	maxReports = 100
	// maxRead bounds the observations that one reflection, or a search for
	// patterns, reads.
	maxRead = 100
	// maxAttempts bounds the attempts at one reflection: nothing else waits for
	// it.
	maxAttempts = 2
)

// State is a project's memory of its reflections, and the material for the next one.
type State struct {
	// Unread are observations that no reflection has read, the oldest first.
	Unread []forge.Observation
	// Runs are the runs that wait to be reflected upon, the oldest first.
	Runs []Run
	// Last is the run that ended last. A reflection that a person asks for reads it
	// when no run waits. Nil before the first.
	Last *Run
	// Requested says that a person asked for a reflection.
	Requested bool
	// Current is the reflection that is under way; nil if there is none.
	Current *Reflection
	// Number is the number of the newest attempt at a reflection.
	Number int
	// Proposals are the intents that were proposed, the oldest first.
	Proposals []Proposal
	// Day is the day that Today is about, in days since 1970, UTC.
	Day int64
	// Today counts the proposals of that day.
	Today int
	// Policy bounds the proposals, as the newest run had it.
	Policy forge.ReflectionPolicy
	// Reports are the newest messages to intents about reflections on their runs.
	Reports []Report
}

// Run is a finished run.
type Run struct {
	Intent forge.IntentID
	On     *forge.ReflectOn
}

// Reflection is the reflection that is under way.
type Reflection struct {
	// Number is the number of the attempt.
	Number int
	// Runs are the runs that it reads, at least one.
	Runs []Run
	// Observations are unread ones of the whole project.
	Observations []forge.Observation
	// Known are proposals that were made before.
	Known []forge.Proposal
	// BudgetUSD limits its cost; 0: no limit.
	BudgetUSD float64
	// Errors counts the attempts that failed.
	Errors int
	// Usage is the consumption of those.
	Usage forge.Usage
	// Avoid are agents that are at a limit.
	Avoid []string
}

// Attempt returns the attempt that the worker's result has to be about.
func (r *Reflection) Attempt() forge.Attempt {
	return forge.Attempt{Step: forge.StepReflect, Number: r.Number, Claim: 1}
}

// Proposal is an intent that was proposed.
type Proposal struct {
	ID    forge.IntentID
	Title string
	// Intent is the submission, repeated until the intent has entered the project; nil
	// from then on.
	Intent *forge.Intent
}

// Report tells an intent that a reflection has read its run or observations.
type Report struct {
	Intent    forge.IntentID
	Reflected *forge.RunReflected
}

// Context gives a step the facts from outside of this package that it needs.
type Context struct {
	Project forge.ProjectID
	Now     time.Time
	// Intent looks an intent of the project up.
	Intent func(forge.IntentID) (Intent, bool)
}

// Intent is an intent of the project as a reflection sees it.
type Intent struct {
	Run        int
	Status     forge.Status
	Generation int
	Source     forge.Source
	// Requesters are the people whose words were in it.
	Requesters []forge.Identity
}

// Ended keeps a run and its observations for the next reflection.
func (s *State) Ended(id forge.IntentID, e *forge.RunEnded) {
	s.Entered(id)
	s.Unread = rule.Last(append(slices.Clip(s.Unread), e.Observed...), maxUnread)
	if e.Reflect == nil {
		return
	}
	s.Policy = e.Reflect.Policy
	s.Last = &Run{Intent: id, On: e.Reflect}
	s.Runs = rule.Last(append(slices.Clip(s.Runs), *s.Last), maxRuns)
}

// Entered keeps that an intent exists, so that its proposal need not be submitted
// again.
func (s *State) Entered(id forge.IntentID) {
	for i := range s.Proposals {
		if s.Proposals[i].ID == id {
			s.Proposals = slices.Clone(s.Proposals)
			s.Proposals[i].Intent = nil
		}
	}
}

// NextUnread returns the unread observations that a search for patterns reads.
func (s *State) NextUnread() []forge.Observation { return s.Unread[:min(len(s.Unread), maxRead)] }

// IsIdle reports whether nothing goes on by itself: no reflection is under way or
// due, and every proposal has become an intent.
func (s *State) IsIdle(paused bool) bool {
	return s.Current == nil && (paused || !s.isWanted()) &&
		!slices.ContainsFunc(s.Proposals, func(p Proposal) bool { return p.Intent != nil })
}

// Repeat sends again the messages that a crash may have lost.
func (s *State) Repeat(out *outbox.Messages) {
	for i := range s.Proposals {
		if in := s.Proposals[i].Intent; in != nil {
			submit(out, in)
		}
	}
	for _, r := range s.Reports {
		r.send(out)
	}
}

// Submit proposes an intent of the rules' own, if there is one, and sends it
// until it exists. One that was proposed before is not proposed again.
func (s *State) Submit(out *outbox.Messages, in *forge.Intent) {
	if in == nil || slices.ContainsFunc(s.Proposals, func(p Proposal) bool { return p.ID == in.ID }) {
		return
	}
	s.Proposals = rule.Last(append(slices.Clip(s.Proposals), Proposal{ID: in.ID, Title: in.Title, Intent: in}), maxProposals)
	submit(out, in)
}

// submit sends a proposal to its own machine, as a submission.
func submit(out *outbox.Messages, in *forge.Intent) {
	out.Add(in.ID, "proposal/"+string(in.ID), &forge.Submit{Intent: *in})
}

// report tells an intent about a reflection, and keeps that for a while.
func (s *State) report(out *outbox.Messages, id forge.IntentID, r *forge.RunReflected) {
	rep := Report{Intent: id, Reflected: r}
	rep.send(out)
	s.Reports = rule.Last(append(slices.Clip(s.Reports), rep), maxReports)
}

// send tells an intent what a reflection on its run found.
func (r *Report) send(out *outbox.Messages) {
	out.Add(r.Intent, fmt.Sprintf("reflected/%s/%d", r.Intent, r.Reflected.Step.Attempt), r.Reflected)
}
