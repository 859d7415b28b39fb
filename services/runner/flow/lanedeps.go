package flow

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// maxActive bounds how many other intents an analysis is told of.
const maxActive = 50

func (l *Lane) enter(id forge.IntentID, e *forge.Enter) (forge.Decision, error) {
	m := l.intents[id]
	switch {
	case m != nil && e.Run < m.run, m != nil && e.Run == m.run && !m.active:
		return ignore("run %d of %q is over", e.Run, id)
	case m != nil && e.Run == m.run:
		l.tellParent(id)
		l.admit(id, m)
		return ignore("%q is admitted already", id)
	}
	next := &member{tasks: map[forge.TaskID]*account{}}
	if m != nil {
		next.ends = m.ends
		next.spent, next.settled, next.open = m.spent, m.settled, m.open
		maps.Copy(next.tasks, m.tasks)
	}
	next.run, next.active, next.title, next.status = e.Run, true, e.Title, forge.StatusProposed
	next.kind, next.parent, next.source, next.generation = e.Type, e.Parent, e.Source, e.Generation
	next.goal = e.Goal
	m = next
	l.intents[id] = m
	l.activate(id, true)
	l.mirror.entered(id)
	l.release(func(r reservation) bool { return r.intent == id }) // of a run whose end did not arrive
	l.tellParent(id)
	l.admit(id, m)
	return forge.Applied, nil
}

// admit lets an intent start and tells it of the others. There is no limit on
// how many are admitted: what is scarce are the workers.
//
// A part waits for its parent's plan to be known, so that its siblings are, and does
// not begin at all if the parent was stopped.
func (l *Lane) admit(id forge.IntentID, m *member) {
	if l.cancelled(m) != "" {
		l.tellCancel(id, m)
		return
	}
	if p := l.member(m.parent); p != nil && !slices.Contains(p.children, id) {
		return
	}
	a := forge.Admitted{Run: m.run, Budget: l.budget, Past: l.relevant(m)}
	if l.paused {
		a.Paused = l.pauses
	} else {
		a.Resumed = l.pauses
	}
	if m.goal {
		a.Knowledge = l.knowledgeFor(m)
	}
	if m.kind == forge.TypeSkillExtraction {
		a.Unread = l.mirror.unread[:min(len(l.mirror.unread), maxAtOnce)]
	}
	for _, other := range l.active {
		if other == id {
			continue
		}
		if len(a.Active) == maxActive {
			break
		}
		o := l.intents[other]
		a.Active = append(a.Active, forge.ActiveIntent{
			ID: other, Title: o.title, Status: o.status, RelevantFiles: o.files, Plan: o.plan,
		})
	}
	l.say(id, fmt.Sprintf("admitted/%s/%d", id, m.run), forge.Event{Message: &a})
}

// planned notes what an intent is going to do, and answers for each intent that
// it depends on: at once if that one has ended, otherwise when it ends.
func (l *Lane) planned(id forge.IntentID, p *forge.Planned) (forge.Decision, error) {
	m := l.member(id)
	if m == nil || p.Run != m.run {
		return ignore("run %d of %q is not active", p.Run, id)
	}
	known := m.status != forge.StatusProposed
	if !known {
		m.status = forge.StatusApproved
		m.files, m.plan, m.depends, m.children = p.RelevantFiles, p.Plan, p.DependsOn, p.Children
		l.budget = p.Budget
	}
	l.meet(id, m)
	for _, d := range p.DependsOn {
		if cycle := l.cycle(id, d); cycle != nil {
			l.tellDependency(id, forge.DependencyEnded{Intent: d, Cycle: cycle})
		} else if o := l.intents[d]; o == nil && l.isExpected(d) {
			continue
		} else if o == nil {
			l.tellDependency(id, forge.DependencyEnded{Intent: d})
		} else if !o.active {
			l.tellDependency(id, forge.DependencyEnded{Intent: d, Status: o.status})
		}
	}
	for _, c := range p.Children {
		l.breakCycle(l.cycle(id, c))
	}
	if known {
		return ignore("the plan of %q is known already", id)
	}
	return forge.Applied, nil
}

func (l *Lane) tellDependency(id forge.IntentID, d forge.DependencyEnded) {
	d.Run = l.intents[id].run
	l.say(id, fmt.Sprintf("dependency/%s/%d/%s", id, d.Run, d.Intent), forge.Event{Message: &d})
}

// cycle returns the path from id over d back to id, or nil.
func (l *Lane) cycle(id, d forge.IntentID) []forge.IntentID {
	seen := map[forge.IntentID]bool{}
	var path func(at forge.IntentID) []forge.IntentID
	path = func(at forge.IntentID) []forge.IntentID {
		if at == id {
			return []forge.IntentID{at}
		}
		m := l.member(at)
		if m == nil || seen[at] {
			return nil
		}
		seen[at] = true
		for _, next := range slices.Concat(m.depends, m.children) {
			if p := path(next); p != nil {
				return append([]forge.IntentID{at}, p...)
			}
		}
		return nil
	}
	if p := path(d); p != nil {
		return append([]forge.IntentID{id}, p...)
	}
	return nil
}

// end forgets what an intent held and wakes those that wait for it.
func (l *Lane) end(id forge.IntentID, e *forge.End) (forge.Decision, error) {
	m := l.intents[id]
	if m == nil {
		m = &member{} // it ended before its entry arrived, which is of no use any more
	}
	if e.Run < m.run || e.Number <= m.ends {
		if e.Run == m.run && !m.active {
			l.wake(id, m.status)
			l.tellParent(id)
		}
		return ignore("run %d of %q is over already", e.Run, id)
	}
	m = &member{
		run: e.Run, ends: e.Number, status: e.Status, tasks: m.tasks,
		spent: m.spent, settled: m.settled, open: m.open,
		kind: m.kind, parent: e.Parent, source: m.source, generation: m.generation,
	}
	l.intents[id] = m
	l.activate(id, false)
	l.learn(id, e)
	if stoppedByPerson(e.Status) {
		l.cancelParts(id)
	}
	l.tellParent(id)
	l.drop(func(r *request) bool { return r.intent == id })
	l.pay(m, e.SpentUSD)
	l.release(func(r reservation) bool { return r.intent == id })
	l.wake(id, e.Status)
	l.pump()
	return forge.Applied, nil
}

// wake tells every intent that waits for id, in the order of their ids.
func (l *Lane) wake(id forge.IntentID, status forge.Status) {
	for _, other := range l.active {
		if slices.Contains(l.intents[other].depends, id) {
			l.tellDependency(other, forge.DependencyEnded{Intent: id, Status: status})
		}
	}
}
