package flow

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Lane is the state machine of a project: what spans its intents. The zero
// value is not ready: see NewLane.
type Lane struct {
	key     forge.Key
	intents map[forge.IntentID]*member
	active  []forge.IntentID // those that have not ended, by id
	queue   []*request       // landings that wait for their turn, oldest first
	waiting []*request       // requests for precedence, oldest first
	held    []*request       // precedence in force, in the order in which it was given
	landing *landing         // the one that is under way
	purse   purse
	budget  forge.Budget // as an intent knew it last
	past    []lesson
	known   []forge.Knowledge // oldest first
	mirror  mirror
	pauses  int // ever
	paused  bool
	heard   map[string]bool // ids of what people asked
	updated time.Time

	timers []forge.Timer
	eff    forge.Effects
	now    time.Time
}

// member is what the lane knows of an intent. Of one that ended only run,
// status and accounts stay.
type member struct {
	run     int
	ends    int // number of its newest end
	active  bool
	status  forge.Status
	title   string
	files   []string
	plan    string
	depends []forge.IntentID
	tasks   map[forge.TaskID]*account

	kind       string // the intent's type
	parent     forge.IntentID
	children   []forge.IntentID
	source     forge.Source
	generation int
	goal       bool
	cancel     string // why it is to be cancelled, if it is

	spent   float64         // in all its runs
	settled int             // number of its newest Settle
	open    []forge.Attempt // that it still needed then
}

// account is what a task has asked of the lane and got.
type account struct {
	number int           // of its newest request
	files  []string      // of the change that it asked to land last
	landed *forge.Landed // the last answer to that
	denied int           // number of the newest request for precedence that was not granted

	withdrawn int // number of the newest request that was taken back
}

// request is something that a task asked of the lane.
type request struct {
	intent  forge.IntentID
	task    forge.TaskID
	number  int
	files   []string
	all     bool        // precedence over every file
	land    *forge.Land // nil for precedence
	since   []string    // files that siblings landed since precedence was given
	reserve forge.Reserve
}

// landing is the integration that is under way.
type landing struct {
	request
	command forge.Command
	errors  int
	paused  bool // until a timer fires
}

// NewLane returns the lane of a project that nothing happened in yet.
func NewLane(key forge.Key) *Lane {
	return &Lane{key: key, intents: map[forge.IntentID]*member{}, heard: map[string]bool{}}
}

// Step decides on one event; see Intent.Step. A request that comes once more is
// answered once more.
func (l *Lane) Step(ev forge.Event) (forge.Effects, forge.Ruling) {
	l.eff = forge.Effects{}
	l.now = ev.At
	decision, err := l.decide(ev)
	if decision == forge.Applied {
		if personal(&ev) || forge.As[*forge.Reflect](ev.Message) != nil {
			l.heard[ev.ID] = true
		}
		l.reflectNext()
	}
	r := forge.Ruling{EventID: ev.ID, Decision: decision}
	if err != nil {
		r.Reason = err.Error()
	}
	if decision == forge.Applied {
		l.updated = ev.At
	}
	eff := l.eff
	l.eff, l.now = forge.Effects{}, time.Time{}
	return eff, r
}

func (l *Lane) decide(ev forge.Event) (forge.Decision, error) {
	from := forge.IntentID(ev.Actor) // notes carry the intent that sent them
	if l.heard[ev.ID] {
		l.eff.Notes = append(l.eff.Notes, l.standing()...)
		return ignore("this was asked and decided already")
	}
	switch m := ev.Message.(type) {
	case *forge.Enter:
		return l.enter(from, m)
	case *forge.Planned:
		return l.planned(from, m)
	case *forge.End:
		return l.end(from, m)
	case *forge.Reserve:
		return l.reserve(from, m)
	case *forge.Land:
		return l.land(from, m)
	case *forge.Withdraw:
		return l.withdraw(from, m)
	case *forge.Spend:
		return l.spend(from, m)
	case *forge.Settle:
		return l.settle(from, m)
	case *forge.Result:
		return l.result(m)
	case *forge.TimerFired:
		return l.timer(m)
	case *forge.Pause:
		return l.pauseAll()
	case *forge.Resume:
		return l.resumeAll()
	case *forge.Cancel:
		return l.cancelAll(m)
	case *forge.Reflect:
		return l.reflectNow()
	}
	return refuse("the event says nothing that a lane knows")
}

// Pending returns every effect that has to be in force. Of the answers, only
// those are among them that may come long after the question: precedence and
// money. Whoever misses another asks again.
func (l *Lane) Pending() forge.Effects {
	e := forge.Effects{Timers: slices.Clone(l.timers)}
	if l.landing != nil && !l.landing.paused {
		e.Commands = append(e.Commands, l.landing.command)
	}
	for _, h := range l.held {
		e.Notes = append(e.Notes, l.note(h.intent, reservedID(&h.reserve), forge.Event{Message: granted(&h.reserve)}))
	}
	for _, r := range slices.Concat(l.purse.reserved, l.purse.refused) {
		e.Notes = append(e.Notes, l.note(r.intent, fundedID(r), forge.Event{Message: r.answer()}))
	}
	e.Notes = append(e.Notes, l.standing()...)
	l.mirror.pending(l, &e)
	return e
}

// Summary is the state as lists show it.
func (l *Lane) Summary() forge.Summary {
	s := forge.Summary{Key: l.key, Settled: l.landing == nil && l.mirror.settled(l), UpdatedAt: l.updated}
	if l.paused {
		s.Waiting, s.Activity = forge.WaitingPaused, "paused"
	}
	if r := l.mirror.running; r != nil {
		s.Activity = "reflecting on " + string(r.command.To.Intent)
		s.Open = append(s.Open, r.command.Attempt)
	}
	if l.landing != nil {
		s.Activity = fmt.Sprintf("integrating %s", l.landing.task)
		if !l.landing.paused {
			s.Open = append(s.Open, l.landing.command.Attempt)
		}
	}
	return s
}

// Active lists the intents that have not ended, by id.
func (l *Lane) Active() []forge.IntentID { return slices.Clone(l.active) }

// activate notes whether an intent has not ended.
func (l *Lane) activate(id forge.IntentID, active bool) {
	i, known := slices.BinarySearch(l.active, id)
	switch {
	case active && !known:
		l.active = slices.Insert(l.active, i, id)
	case !active && known:
		l.active = slices.Delete(l.active, i, i+1)
	}
}

// say sends an event to an intent.
func (l *Lane) say(to forge.IntentID, id string, ev forge.Event) {
	l.eff.Notes = append(l.eff.Notes, l.note(to, id, ev))
}

func (l *Lane) note(to forge.IntentID, id string, ev forge.Event) forge.Event {
	ev.ID = "lane/" + id
	ev.To = forge.Key{Project: l.key.Project, Intent: to}
	return ev
}

// member returns the intent's entry if it is active.
func (l *Lane) member(id forge.IntentID) *member {
	if m := l.intents[id]; m != nil && m.active {
		return m
	}
	return nil
}
