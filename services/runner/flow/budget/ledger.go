package budget

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Ledger is the account of a project's budgets. It spans all intents; each
// intent keeps an account of its own as well.
//
// A call moves through it like this:
//
//	           Reserve                    Commit, Close
//	(unknown) ---------> waiting ---> reserved ----------> (unknown)
//	                        |                                  ^
//	                        +-------> refused -----------------+
//
// A call waits as long as the limits do not allow it now and other calls may
// still give something back. Calls are answered in the order in which they came,
// those that continue work before those that begin it.
type Ledger struct {
	// Limits are the budgets of the project, as an intent read them last.
	Limits forge.Budget
	// SpentUSD is the sum that all intents have ever spent.
	SpentUSD float64
	// Day is the day that TodayUSD is about, in days since 1970, UTC.
	Day int64
	// TodayUSD is the sum spent on that day.
	TodayUSD float64
	// Accounts has an entry for every intent that ever began.
	Accounts map[forge.IntentID]Account
	// Waiting are the calls that are not answered yet, the next one first.
	Waiting []Call
	// Reserved are the calls that may cost something and have not ended.
	Reserved []Call
	// Refused are the calls that there was no budget for. They stay until their
	// intent says that it does not need them any more.
	Refused []Call
	// ReflectionUSD is reserved for the reflection that is under way.
	ReflectionUSD float64
}

// Account is the entry of one intent in the ledger.
type Account struct {
	// SpentUSD is the sum that the intent has spent in all its runs.
	SpentUSD float64
	// Number is the number of the newest commit.
	Number int
	// Open are the attempts that the intent still needed then.
	Open []forge.Attempt
}

// Call is a call of an agent that costs something.
type Call struct {
	Intent forge.IntentID
	// Number is the number of the message that asked for it; see forge.ReserveBudget.
	Number  int
	Attempt forge.Attempt
	// Limits are the budgets as the intent knows them.
	Limits forge.Budget
	// USD is the amount that the call asks for, then the amount granted; 0: refused.
	USD float64
	// UnderWay says that the call continues work that others have paid for.
	UnderWay bool
	// Refusal says for a person why there is no budget for the call.
	Refusal string
}

// Open makes an account for an intent whose run begins. Whatever it asked for in
// a run before is released.
func (l *Ledger) Open(out *outbox.Messages, id forge.IntentID, now time.Time) {
	l.account(id, l.Accounts[id])
	l.release(out, now, func(c Call) bool { return c.Intent == id })
}

// account sets the account of an intent.
func (l *Ledger) account(id forge.IntentID, a Account) {
	if l.Accounts == nil {
		l.Accounts = map[forge.IntentID]Account{}
	}
	l.Accounts[id] = a
}

// Reserve asks for budget for one call of an intent whose run is active. A call
// that was answered is answered again.
func (l *Ledger) Reserve(out *outbox.Messages, c Call, now time.Time) (forge.Decision, error) {
	same := func(o Call) bool { return o.Intent == c.Intent && o.Attempt == c.Attempt }
	a := l.Accounts[c.Intent]
	switch {
	case slices.ContainsFunc(l.Waiting, same):
		return rule.Ignore("%s waits for budget already", c.Attempt)
	case c.Number <= a.Number && !slices.Contains(a.Open, c.Attempt):
		return rule.Ignore("%s is accounted for already", c.Attempt)
	}
	for _, list := range [][]Call{l.Reserved, l.Refused} {
		if i := slices.IndexFunc(list, same); i >= 0 {
			list[i].answer(out)
			return rule.Ignore("%s was answered already", c.Attempt)
		}
	}
	l.Limits = c.Limits
	at := len(l.Waiting)
	if c.UnderWay {
		if i := slices.IndexFunc(l.Waiting, func(o Call) bool { return !o.UnderWay }); i >= 0 {
			at = i
		}
	}
	l.Waiting = slices.Insert(l.Waiting, at, c)
	l.grant(out, now)
	return forge.Applied, nil
}

// Commit books the total that an intent has spent, and releases the reservations
// of attempts that are not open any more. A total is safe to repeat.
func (l *Ledger) Commit(out *outbox.Messages, id forge.IntentID, st *forge.CommitBudget, now time.Time) (forge.Decision, error) {
	a, known := l.Accounts[id]
	if !known || st.Number <= a.Number {
		return rule.Ignore("what %q has spent is known already", id)
	}
	a.Number, a.Open = st.Number, st.Open
	l.account(id, a)
	l.book(id, st.SpentUSD, now)
	l.release(out, now, func(c Call) bool {
		return c.Intent == id && c.Number < st.Number && !slices.Contains(st.Open, c.Attempt)
	})
	return forge.Applied, nil
}

// Close books the total that an intent has spent when its run ends, and releases
// all its reservations.
func (l *Ledger) Close(out *outbox.Messages, id forge.IntentID, spentUSD float64, now time.Time) {
	l.account(id, l.Accounts[id])
	l.book(id, spentUSD, now)
	l.release(out, now, func(c Call) bool { return c.Intent == id })
}

// book adds the difference between an intent's total and the last one. A smaller
// total is an older one, and changes nothing.
func (l *Ledger) book(id forge.IntentID, total float64, now time.Time) {
	a := l.Accounts[id]
	if total <= a.SpentUSD {
		return
	}
	l.turnDay(now)
	l.SpentUSD += total - a.SpentUSD
	l.TodayUSD += total - a.SpentUSD
	a.SpentUSD = total
	l.Accounts[id] = a
}

// turnDay begins to count anew when a new day has begun.
func (l *Ledger) turnDay(now time.Time) {
	if day := now.Unix() / (24 * 60 * 60); day != l.Day {
		l.Day, l.TodayUSD = day, 0
	}
}

// release forgets calls, and grants the money that this frees to those that
// wait.
func (l *Ledger) release(out *outbox.Messages, now time.Time, which func(Call) bool) {
	l.Reserved = slices.DeleteFunc(l.Reserved, which)
	l.Refused = slices.DeleteFunc(l.Refused, which)
	l.Waiting = slices.DeleteFunc(l.Waiting, which)
	l.grant(out, now)
}

// ReserveReflection reserves budget for a reflection. wait means that it is to be
// asked for again later; a refusal says for a person why there is no budget. 0
// without a refusal means that the project has no limit.
func (l *Ledger) ReserveReflection(now time.Time) (usd float64, refusal string, wait bool) {
	if l.Limits.Shared() {
		l.turnDay(now)
		usd, refusal, wait = l.room(l.Limits, Slice(l.Limits))
	}
	if !wait && refusal == "" {
		l.ReflectionUSD = usd
	}
	return usd, refusal, wait
}

// ReleaseReflection releases the reservation of the reflection that ended.
func (l *Ledger) ReleaseReflection(out *outbox.Messages, now time.Time) {
	l.ReflectionUSD = 0
	l.grant(out, now)
}

// grant answers the calls that wait, in order, as far as it is certain whether
// there is budget for them.
func (l *Ledger) grant(out *outbox.Messages, now time.Time) {
	l.turnDay(now)
	for len(l.Waiting) > 0 {
		c := l.Waiting[0]
		usd, refusal, wait := l.room(c.Limits, c.USD)
		if wait {
			return
		}
		l.Waiting = slices.Delete(l.Waiting, 0, 1)
		c.USD, c.Refusal = usd, refusal
		if usd > 0 {
			l.Reserved = append(l.Reserved, c)
		} else {
			l.Refused = append(l.Refused, c)
		}
		c.answer(out)
	}
}

// room decides on one call of the project: every limit has to allow it.
func (l *Ledger) room(b forge.Budget, wish float64) (usd float64, refusal string, wait bool) {
	reserved := l.ReflectionUSD
	for i := range l.Reserved {
		reserved += l.Reserved[i].USD
	}
	usd = wish
	for _, pool := range []struct {
		limit, spent float64
		refusal      string
	}{
		{b.ProjectUSD, l.SpentUSD, "the project's budget of $%.2f is used up ($%.2f spent); raise budget.project_usd in pfl-forge.yaml and commit it"},
		{b.DayUSD, l.TodayUSD, "the day's budget of $%.2f is used up ($%.2f spent since 00:00 UTC); wait for tomorrow, or " +
			"raise budget.day_usd in pfl-forge.yaml and commit it"},
	} {
		if pool.limit <= 0 {
			continue
		}
		granted, hold := Room(pool.limit-pool.spent-reserved, usd, reserved > 0)
		if hold {
			return 0, "", true
		}
		if granted == 0 {
			return 0, fmt.Sprintf(pool.refusal, pool.limit, pool.spent), false
		}
		usd = granted
	}
	return usd, "", false
}

// Repeat sends again every answer that may come long after its question.
func (l *Ledger) Repeat(out *outbox.Messages) {
	for _, list := range [][]Call{l.Reserved, l.Refused} {
		for i := range list {
			list[i].answer(out)
		}
	}
}

// answer tells an intent whether the call has its money.
func (c *Call) answer(out *outbox.Messages) {
	out.Add(c.Intent, "funded/"+string(c.Intent)+"/"+c.Attempt.String(),
		&forge.BudgetReserved{Attempt: c.Attempt, USD: c.USD, Reason: c.Refusal})
}
