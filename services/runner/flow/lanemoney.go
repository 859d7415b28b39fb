package flow

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// purse is what a project's agents spent, and what is set aside for calls that
// run. It is bookkeeping for all intents together; each keeps its own books too.
type purse struct {
	spent    float64
	day      int64 // since 1970, UTC
	today    float64
	reserved []reservation
	refused  []reservation // there was no money for them
	queue    []reservation // calls that wait until others have settled, in order
	aside    float64       // for the reflection that runs
}

// reservation is money for one call.
type reservation struct {
	intent  forge.IntentID
	number  int // of the intent's message
	attempt forge.Attempt
	budget  forge.Budget
	usd     float64
	begun   bool   // it goes on with work that is under way
	why     string // there is none
}

func (l *Lane) spend(id forge.IntentID, sp *forge.Spend) (forge.Decision, error) {
	m := l.member(id)
	same := func(r reservation) bool { return r.intent == id && r.attempt == sp.Attempt }
	switch {
	case m == nil || m.run != sp.Run:
		return ignore("run %d of %q is not active", sp.Run, id)
	case slices.ContainsFunc(l.purse.queue, same):
		return ignore("%s waits for money already", sp.Attempt)
	case sp.Number <= m.settled && !slices.Contains(m.open, sp.Attempt):
		return ignore("%s is settled already", sp.Attempt)
	}
	if answered := slices.Concat(l.purse.reserved, l.purse.refused); slices.ContainsFunc(answered, same) {
		l.tellFunded(answered[slices.IndexFunc(answered, same)])
		return ignore("%s was answered already", sp.Attempt)
	}
	l.budget = sp.Budget
	at := len(l.purse.queue)
	if sp.Begun {
		if i := slices.IndexFunc(l.purse.queue, func(r reservation) bool { return !r.begun }); i >= 0 {
			at = i
		}
	}
	l.purse.queue = slices.Insert(l.purse.queue, at, reservation{
		intent: id, number: sp.Number, attempt: sp.Attempt, budget: sp.Budget, usd: sp.USD, begun: sp.Begun,
	})
	l.fund()
	return forge.Applied, nil
}

// settle takes what an intent has spent, and what it still needs of what was set
// aside for it.
func (l *Lane) settle(id forge.IntentID, st *forge.Settle) (forge.Decision, error) {
	m := l.intents[id]
	if m == nil || st.Number <= m.settled {
		return ignore("what %q has spent is known already", id)
	}
	m.settled, m.open = st.Number, st.Open
	l.pay(m, st.SpentUSD)
	l.release(func(r reservation) bool {
		return r.intent == id && r.number < st.Number && !slices.Contains(st.Open, r.attempt)
	})
	return forge.Applied, nil
}

// pay books what an intent has spent in all.
func (l *Lane) pay(m *member, total float64) {
	if total > m.spent {
		l.today()
		l.purse.spent += total - m.spent
		l.purse.today += total - m.spent
		m.spent = total
	}
}

// today turns the page when a new day has begun.
func (l *Lane) today() {
	if day := l.now.Unix() / (24 * 60 * 60); day != l.purse.day {
		l.purse.day, l.purse.today = day, 0
	}
}

func (l *Lane) release(which func(reservation) bool) {
	l.purse.reserved = slices.DeleteFunc(l.purse.reserved, which)
	l.purse.refused = slices.DeleteFunc(l.purse.refused, which)
	l.purse.queue = slices.DeleteFunc(l.purse.queue, which)
	l.fund()
}

// fund gives money to the calls that wait for it, in order.
func (l *Lane) fund() {
	l.today()
	for len(l.purse.queue) > 0 {
		r := l.purse.queue[0]
		usd, why, wait := l.purse.room(r.budget, r.usd)
		if wait {
			return
		}
		l.purse.queue = slices.Delete(l.purse.queue, 0, 1)
		r.usd, r.why = usd, why
		if usd > 0 {
			l.purse.reserved = append(l.purse.reserved, r)
		} else {
			l.purse.refused = append(l.purse.refused, r)
		}
		l.tellFunded(r)
	}
}

// room decides on one call of a project.
func (p *purse) room(b forge.Budget, wish float64) (usd float64, why string, wait bool) {
	reserved := p.aside
	for _, r := range p.reserved {
		reserved += r.usd
	}
	usd = wish
	for _, pool := range []struct {
		limit, spent float64
		why          string
	}{
		{b.ProjectUSD, p.spent, "the project's budget of $%.2f is used up ($%.2f spent); raise budget.project_usd in pfl-forge.yaml and commit it"},
		{b.DayUSD, p.today, "the day's budget of $%.2f is used up ($%.2f spent since 00:00 UTC); wait for tomorrow, or " +
			"raise budget.day_usd in pfl-forge.yaml and commit it"},
	} {
		if pool.limit <= 0 {
			continue
		}
		granted, hold := room(pool.limit-pool.spent-reserved, usd, reserved > 0)
		if hold {
			return 0, "", true
		}
		if granted == 0 {
			return 0, fmt.Sprintf(pool.why, pool.limit, pool.spent), false
		}
		usd = granted
	}
	return usd, "", false
}

func (l *Lane) tellFunded(r reservation) {
	l.say(r.intent, fundedID(r), forge.Event{Message: r.answer()})
}

func fundedID(r reservation) string { return "funded/" + string(r.intent) + "/" + r.attempt.String() }

func (r *reservation) answer() *forge.Funded {
	return &forge.Funded{Attempt: r.attempt, USD: r.usd, Reason: r.why}
}
