// Package schedule submits intents at the times that a project's schedules say.
//
// Of a schedule at most one intent is open: while the last one is, a time that comes
// is left out, and so is one at which the project is paused. Times that nothing was
// running at lead to one intent together, or to none, as the schedule says. An
// intent is submitted until it has asked to be admitted, and its id follows from the
// schedule and the time, so that no time ever leads to two of them.
//
// # The life of a schedule
//
//	set         Decide takes all schedules of a project at once, checks them, and sets the next time of each
//	due         its timer fires. All that have come by then are looked at; the timer of the next one is set
//	submitted   its intent is sent to the intent's own machine, again and again, until Entered
//	open        the intent was admitted and has not ended; the scheduler of the project knows
//	left out    it was due while its intent was open, while the project was paused, or unnoticed (Skip)
//	paused      it is not due. Resumed, it is due the next time from then on
//
// # Who may fool it
//
//	a timer that comes twice or late   changes nothing where no schedule is due any more
//	a clock that is behind             the time of the timer counts, if it is later than that of the event, and no time comes again
//	who takes the id of an intent      the time is left out
//	two databases of time zones        the next time is kept as it was computed, and only the one after it follows the other database
package schedule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/schedules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// timer is the key of the timer for the next time of any schedule.
const timer = "schedule"

// late is how long after its time a schedule is missed.
const late = 10 * time.Minute

// most is how many people a schedule remembers whose words are in it.
const most = 20

// maxText bounds all schedules together, in bytes of JSON: they are one
// message, and a part of the project's state.
const maxText = 200_000

// State are the schedules of a project. The zero value has none. Copies of a
// state share the list, so that it is cloned before anything in it changes.
type State struct {
	List []Entry // in the order in which they were set
}

// Entry is a schedule, and how far it is.
type Entry struct {
	forge.Schedule

	By     []forge.Identity // who put it into words, the newest first
	Paused bool             // whether it is, and Reason why
	Reason string
	Next   time.Time // when it is due; zero while it is paused
	Last   time.Time // the newest time that it was due
	// Submitted is the newest intent, and Skipped says why Last led to none.
	// Submitted is of a time before that, then.
	Submitted forge.IntentID
	Skipped   string
	// Submitting is the intent that has not asked to be admitted yet.
	Submitting *forge.Intent
}

// Project is a project as schedules look at it.
type Project struct {
	ID     forge.ProjectID
	Paused bool
	Now    time.Time
	// Open reports whether an intent has been admitted, and has not ended.
	Open func(forge.IntentID) bool
	// Known reports whether an intent has ever been admitted.
	Known func(forge.IntentID) bool
}

// Decide takes the wish of a person about schedules.
func (s *State) Decide(by rules.Version, ev *forge.Event, p *Project) (forge.Decision, error) {
	if !by.Has(rules.Schedules) {
		return rule.Refuse("some runner does not know schedules yet; update all of them first")
	}
	if m := forge.As[*forge.PauseSchedule](ev.Message); m != nil {
		return s.pause(m, p)
	}
	return s.set(forge.Identity{Name: ev.Actor, Proven: true}, forge.As[*forge.SetSchedules](ev.Message), p)
}

// set replaces the schedules. One that is the same goes on, and keeps who set it.
func (s *State) set(by forge.Identity, m *forge.SetSchedules, p *Project) (forge.Decision, error) {
	if len(m.Schedules) > schedules.Max {
		return rule.Refuse("schedules: there are %d; at most %d are allowed", len(m.Schedules), schedules.Max)
	}
	list := make([]Entry, len(m.Schedules))
	for i := range m.Schedules {
		n := &m.Schedules[i]
		if e := schedules.Validate(n); e != nil {
			return rule.Refuse("schedules[%d].%s: %s", i, e.Field, e.Reason)
		}
		if slices.ContainsFunc(m.Schedules[:i], func(o forge.Schedule) bool { return o.Name == n.Name }) {
			return rule.Refuse("schedules[%d].name: %s is the name of another one, too", i, n.Name)
		}
		list[i] = s.next(n, by)
		list[i].due(p.Now)
	}
	if text, err := json.Marshal(m); err != nil || len(text) > maxText {
		return rule.Refuse("schedules: they have %d bytes; at most %d are allowed together", len(text), maxText)
	}
	if slices.EqualFunc(list, s.List, func(a, b Entry) bool { return reflect.DeepEqual(a.Schedule, b.Schedule) }) {
		return rule.Ignore("the project has these schedules already")
	}
	s.List = list
	return forge.Applied, nil
}

// next returns the entry of a schedule that is applied again, unchanged if the schedule
// is the same. A changed one keeps its last time and its open intent, so that no second
// intent is opened; its pause, because a person paused the name; and the requesters of
// its texts, because another time of the day does not change who wrote them.
func (s *State) next(n *forge.Schedule, by forge.Identity) Entry {
	at := s.find(n.Name)
	if at < 0 {
		return Entry{Schedule: *n, By: []forge.Identity{by}}
	}
	e := s.List[at]
	if !reflect.DeepEqual(e.Schedule, *n) {
		words := append([]forge.Identity{by}, slices.DeleteFunc(slices.Clone(e.By), func(o forge.Identity) bool { return o == by })...)
		e.Schedule, e.By, e.Next = *n, words[:min(len(words), most)], time.Time{}
	}
	return e
}

// pause pauses or resumes a schedule. Times that came meanwhile are not made up for.
func (s *State) pause(m *forge.PauseSchedule, p *Project) (forge.Decision, error) {
	at := s.find(m.Name)
	switch {
	case at < 0:
		return rule.Refuse("name: the project has no schedule %q; see pfl-forge schedules", rule.Shorten(m.Name, 60))
	case s.List[at].Paused && m.Paused:
		return rule.Ignore("it is paused already")
	case !s.List[at].Paused && !m.Paused:
		return rule.Ignore("it is not paused")
	}
	s.List = slices.Clone(s.List) // copies of the state share it
	e := &s.List[at]
	e.Paused, e.Reason, e.Next = m.Paused, "", time.Time{}
	if m.Paused {
		e.Reason = rule.Shorten(m.Reason, forge.MaxName)
	}
	e.due(p.Now)
	return forge.Applied, nil
}

func (s *State) find(name string) int {
	return slices.IndexFunc(s.List, func(e Entry) bool { return e.Name == name })
}

// due sets when the schedule is due next, unless that is known. It was checked when it
// was set, and so it can be read; one that cannot, after a change of what is allowed, is
// not due any more. A time that has come does not come again for a clock that is behind.
func (e *Entry) due(now time.Time) {
	if e.Paused || !e.Next.IsZero() {
		return
	}
	if e.Last.After(now) {
		now = e.Last
	}
	if times, err := schedules.Parse(e.Cron, e.Zone); err == nil {
		e.Next = times.Next(now)
	}
}

// Timer returns the timer of the schedule that is due first; nil if none is. There
// is one for all of them, so that fifty schedules cost a project no more than one.
func (s *State) Timer(project forge.Key) *forge.Timer {
	var at time.Time
	for i := range s.List {
		if next := s.List[i].Next; !next.IsZero() && (at.IsZero() || next.Before(at)) {
			at = next
		}
	}
	if at.IsZero() {
		return nil
	}
	return &forge.Timer{To: project, Key: timer, At: at}
}

// IsTimer reports whether a timer is that of the schedules.
func IsTimer(fired *forge.TimerFired) bool { return fired.Key == timer }

// Fire submits the intents of those that are due. Clocks differ, so a timer
// that has fired is due at its own time, too.
func (s *State) Fire(out *outbox.Messages, fired *forge.TimerFired, p *Project) (forge.Decision, error) {
	now := p.Now
	if fired.At.After(now) {
		now = fired.At
	}
	if !slices.ContainsFunc(s.List, func(e Entry) bool { return e.isDue(now) }) {
		return rule.Ignore("no schedule is due at %s", fired.At.UTC().Format(time.RFC3339))
	}
	s.List = slices.Clone(s.List)
	for i := range s.List {
		if e := &s.List[i]; e.isDue(now) {
			e.fire(out, p, now)
		}
	}
	return forge.Applied, nil
}

func (e *Entry) isDue(now time.Time) bool { return !e.Next.IsZero() && !e.Next.After(now) }

// fire submits the intent of a schedule that is due, or notes why not, and sets
// when it is due next. The next time is counted from now, and not from the one
// that has come: however many were missed, they are one.
func (e *Entry) fire(out *outbox.Messages, p *Project, now time.Time) {
	e.Last, e.Skipped = e.Next, ""
	switch {
	case e.Submitted != "" && (e.Submitting != nil || p.Open(e.Submitted)):
		e.Skipped = fmt.Sprintf("%s is still open", e.Submitted)
	case p.Paused:
		e.Skipped = "the project was paused"
	case now.Sub(e.Next) > late && e.Missed == schedules.Skip:
		e.Skipped = "nothing was running at that time"
	default:
		in := schedules.Intent(&e.Schedule, p.ID, e.Next, e.By...)
		if p.Known(in.ID) { // it will not ask to be admitted again, and so nothing would ever follow
			e.Skipped = fmt.Sprintf("another intent has its id, %s", in.ID)
			break
		}
		e.Submitting, e.Submitted = in, in.ID
		e.send(out)
	}
	e.Next = time.Time{}
	e.due(now)
}

// send submits the intent that has not asked to be admitted yet.
func (e *Entry) send(out *outbox.Messages) {
	out.Add(e.Submitting.ID, "schedule/"+string(e.Submitting.ID), &forge.Submit{Intent: *e.Submitting})
}

// Entered takes that an intent has asked to be admitted.
func (s *State) Entered(id forge.IntentID) {
	at := slices.IndexFunc(s.List, func(e Entry) bool { return e.Submitting != nil && e.Submitting.ID == id })
	if at >= 0 {
		s.List = slices.Clone(s.List)
		s.List[at].Submitting = nil
	}
}

// Repeat submits once more the intents that have not asked to be admitted yet.
func (s *State) Repeat(out *outbox.Messages) {
	for i := range s.List {
		if s.List[i].Submitting != nil {
			s.List[i].send(out)
		}
	}
}

// Summaries returns the schedules as lists show them.
func (s *State) Summaries() (list []forge.ScheduleSummary) {
	for i := range s.List {
		e := &s.List[i]
		sum := forge.ScheduleSummary{
			Name: e.Name, Cron: e.Cron, Zone: cmp.Or(e.Zone, "UTC"), Missed: cmp.Or(e.Missed, schedules.Once), Title: e.Intent.Title,
			SetBy: e.By[0].Name, Digest: schedules.Digest(&e.Schedule), Paused: e.Paused, Reason: e.Reason, NextAt: e.Next, LastAt: e.Last, Skipped: e.Skipped,
		}
		if e.Skipped == "" {
			sum.LastIntent = e.Submitted
		}
		list = append(list, sum)
	}
	return list
}
