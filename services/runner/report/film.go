package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// Film goes through the records of the journal of an intent, and tells each for readers.
type Film struct {
	// Records are those that it went through.
	Records []document.Record
	// intent decides by today's rules, or, where nothing is compared, by those of the records.
	intent *flow.Intent
	// compare says that what differs is said.
	compare bool
	// shown counts the rules that were shown of the present run.
	shown, run int
}

// NewFilm returns the Film of a journal before its first record. With compare,
// each record says where today's rules would have decided otherwise.
func NewFilm(key forge.Key, compare bool) *Film {
	return &Film{intent: flow.NewIntent(key), compare: compare}
}

// Add takes the next record.
func (f *Film) Add(rec *forge.Record) {
	r := document.Record{Number: len(f.Records) + 1, Version: int(rules.Of(rec)), State: stateOf(&rec.Summary), Sent: sent(&rec.Effects)}
	for i := range rec.Events {
		ev := &rec.Events[i]
		if i == 0 {
			r.At = ev.At
		}
		r.Events = append(r.Events, eventOf(ev))
	}
	if differs := f.decide(rec); f.compare {
		r.Differs = differs
	}
	r.Rules = f.fresh()
	f.Records = append(f.Records, r)
}

// fresh returns the rules that changed the flow and were not shown yet.
func (f *Film) fresh() []string {
	all := f.intent.History.Adjustments
	if f.intent.Run != f.run {
		f.run, f.shown = f.intent.Run, 0
	}
	var list []string
	for _, a := range all[min(f.shown, len(all)):] {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s", a.Rule, a.TaskID, a.Detail)))
	}
	f.shown = len(all)
	return list
}

// decide decides on the events of a record once more, and returns what differs.
func (f *Film) decide(rec *forge.Record) []string {
	var eff forge.Effects
	var differs []string
	by := rules.Of(rec)
	if f.compare {
		by = rules.Newest
	}
	for _, ev := range rec.Events {
		e, r := f.intent.Step(by, ev)
		machine.Merge(&eff, e)
		if r.Decision != forge.Applied {
			differs = append(differs, fmt.Sprintf("%s is %s now: %s", eventOf(&ev), r.Decision, r.Reason))
		}
	}
	now := f.intent.Summary()
	if was, is := stateOf(&rec.Summary), stateOf(&now); was != is {
		differs = append(differs, fmt.Sprintf("the state was %s, and is %s", was, is))
	}
	was, is := sent(&rec.Effects), sent(&eff)
	for _, line := range was {
		if !slices.Contains(is, line) {
			differs = append(differs, "is not sent now: "+line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			differs = append(differs, "is sent now: "+line)
		}
	}
	return differs
}

// stateOf returns the state of an intent in a line.
func stateOf(s *forge.Summary) string {
	text := fmt.Sprintf("run %d %s", s.Run, s.Status)
	if s.Waiting != "" {
		text += ", waits: " + string(s.Waiting)
	}
	if s.Activity != "" {
		text += ", " + s.Activity
	}
	return text
}

// eventOf names an event by its message, and who sent it.
func eventOf(ev *forge.Event) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", ev.Message), "*forge.")
	switch m := ev.Message.(type) {
	case *forge.Result:
		outcome := strings.TrimPrefix(fmt.Sprintf("%T", m.Output), "*forge.")
		if f := m.Failure(); f != nil {
			outcome += " " + string(f.Reason)
		}
		return fmt.Sprintf("%s of %s: %s", name, m.Attempt, outcome)
	case *forge.TimerFired:
		return name + " " + m.Key
	default:
		if ev.Account != "" {
			return name + " by " + ev.Actor + " via " + ev.Via
		}
		if ev.Actor != "" {
			return name + " by " + ev.Actor
		}
		return name
	}
}

// sent returns the effects, each by what identifies it. Inputs of commands and texts of messages
// are left out: words change more often than rules, and the identity is all that a receiver
// goes by.
func sent(e *forge.Effects) []string {
	var list []string
	for i := range e.Commands {
		c := &e.Commands[i]
		line := "command " + c.Attempt.String()
		if c.Replica != "" {
			line += " for " + string(c.Replica)
		}
		if c.BudgetUSD > 0 {
			line += fmt.Sprintf(" for $%.2f", c.BudgetUSD)
		}
		list = append(list, line)
	}
	for i := range e.Timers {
		list = append(list, fmt.Sprintf("timer %s at %s", e.Timers[i].Key, e.Timers[i].At.UTC().Format(time.RFC3339)))
	}
	for i := range e.Outbox {
		to := string(e.Outbox[i].To.Intent)
		if to == "" {
			to = "project"
		}
		list = append(list, fmt.Sprintf("%s to %s", strings.TrimPrefix(fmt.Sprintf("%T", e.Outbox[i].Message), "*forge."), to))
	}
	for _, a := range e.Cancels {
		list = append(list, "stop "+a.String())
	}
	if e.Ended {
		list = append(list, "the run ended")
	}
	return list
}
