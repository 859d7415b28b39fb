package flow

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// stoppedByPerson reports whether an intent ended because somebody wanted that.
func stoppedByPerson(s forge.Status) bool {
	return s == forge.StatusCancelled || s == forge.StatusRejected
}

// meet brings an intent and its parts together once it is known that they are.
func (l *Lane) meet(id forge.IntentID, m *member) {
	for _, c := range m.children {
		p := l.intents[c]
		if p == nil || p.parent != id {
			continue
		}
		if p.active && p.status == forge.StatusProposed {
			l.admit(c, p)
		}
		l.tellParent(c)
	}
}

// breakCycle tells the first intent on the path that waits for another one by its own
// plan that it does so in vain. That an intent waits for its parts is no plan of its
// own.
func (l *Lane) breakCycle(path []forge.IntentID) {
	for i := 0; i+1 < len(path); i++ {
		m := l.member(path[i])
		if m != nil && slices.Contains(m.depends, path[i+1]) && !slices.Contains(m.children, path[i+1]) {
			round := append(slices.Clone(path[i:]), path[1:i+1]...)
			l.tellDependency(path[i], forge.DependencyEnded{Intent: path[i+1], Cycle: round})
			return
		}
	}
}

// isExpected reports whether an intent is a part that has not begun yet.
func (l *Lane) isExpected(id forge.IntentID) bool {
	return slices.ContainsFunc(l.active, func(a forge.IntentID) bool { return slices.Contains(l.intents[a].children, id) })
}

// tellParent tells an intent how far a part of it is.
func (l *Lane) tellParent(id forge.IntentID) {
	m := l.intents[id]
	if m == nil || m.parent == "" || l.intents[m.parent] == nil {
		return
	}
	c := forge.Child{Intent: id, Run: m.run, Status: m.status}
	if !m.active {
		c.Number = m.ends
	}
	l.say(m.parent, fmt.Sprintf("part/%s/%d/%d", id, c.Run, c.Number), forge.Event{Message: &c})
}

// cancelParts has the parts of an intent that a person stopped stop as well.
func (l *Lane) cancelParts(id forge.IntentID) {
	for _, c := range l.active {
		if p := l.intents[c]; p.parent == id {
			l.tellCancel(c, p)
		}
	}
}

// cancelled says why an intent is to be cancelled, or nothing.
func (l *Lane) cancelled(m *member) string {
	if p := l.intents[m.parent]; p != nil && m.parent != "" && stoppedByPerson(p.status) {
		return fmt.Sprintf("%q, of which it is a part, was %s", m.parent, p.status)
	}
	return m.cancel
}

func (l *Lane) tellCancel(id forge.IntentID, m *member) {
	l.eff.Notes = append(l.eff.Notes, l.cancelNote(id, m))
}

func (l *Lane) cancelNote(id forge.IntentID, m *member) forge.Event {
	return l.note(id, fmt.Sprintf("cancel/%s/%d", id, m.run), forge.Event{Message: &forge.Cancel{Reason: l.cancelled(m)}})
}

// cancelAll stops everything that the project is at.
func (l *Lane) cancelAll(c *forge.Cancel) (forge.Decision, error) {
	if len(l.active) == 0 {
		return refuse("nothing is under way in the project")
	}
	reason := c.Reason
	if reason == "" {
		reason = "everything in the project was cancelled"
	}
	for _, id := range l.active {
		m := l.intents[id]
		m.cancel = reason
		l.tellCancel(id, m)
	}
	return forge.Applied, nil
}

// pauseAll stops every agent of the project. Nothing lands meanwhile.
func (l *Lane) pauseAll() (forge.Decision, error) {
	if l.paused {
		return ignore("the project is paused already")
	}
	l.pauses++
	l.paused = true
	l.eff.Notes = append(l.eff.Notes, l.standing()...)
	return forge.Applied, nil
}

func (l *Lane) resumeAll() (forge.Decision, error) {
	if !l.paused {
		return refuse("the project is not paused")
	}
	l.paused = false
	l.eff.Notes = append(l.eff.Notes, l.standing()...)
	l.pump()
	return forge.Applied, nil
}

// standing is what every active intent has to know, however often it is told.
func (l *Lane) standing() []forge.Event {
	var list []forge.Event
	for _, id := range l.active {
		m := l.intents[id]
		switch {
		case l.cancelled(m) != "":
			list = append(list, l.cancelNote(id, m))
		case l.paused:
			list = append(list, l.note(id, fmt.Sprintf("pause/%s/%d", id, l.pauses), forge.Event{Message: &forge.Pause{
				Reason: forge.ProjectPaused, Number: l.pauses,
			}}))
		case l.pauses > 0:
			list = append(list, l.note(id, fmt.Sprintf("resume/%s/%d", id, l.pauses), forge.Event{Message: &forge.Resume{Number: l.pauses}}))
		}
	}
	return list
}
