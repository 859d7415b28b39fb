package budget

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Ledger is the account of a project's budgets: of the project, of the day, and
// of each intent with its children.
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
	// Known says that an intent has told them; before that, budgets are not known.
	Known bool
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
	// ReflectionUSD is reserved for the reflection that is under way, and Reflected is the
	// intent whose budget it draws on.
	ReflectionUSD float64
	Reflected     forge.IntentID
	// Running are the intents with an active account, by id. Accounts has all
	// that there ever were, and a decision must not look at each of them.
	Running []forge.IntentID
	// Opened counts the runs that were admitted, so that the older one of two is known.
	Opened int
}

// Account is the entry of one intent in the ledger. A snapshot leaves out what is zero.
type Account struct {
	// SpentUSD is the sum that the intent has spent in all its runs.
	SpentUSD float64 `json:"spent_usd,omitzero"`
	// Number is the number of the newest commit.
	Number int `json:"number,omitzero"`
	// Open are the attempts that the intent still needed then.
	Open []forge.Attempt `json:"open,omitzero"`
	// Parent is the intent that this one is a child of; empty if it is none.
	Parent forge.IntentID `json:"parent,omitzero"`
	// TreeUSD is the sum that the intent and all below it have spent. It is kept for an intent
	// without a parent.
	TreeUSD float64 `json:"tree_usd,omitzero"`
	// OwnUSD is the budget that the intent has by itself, as of the message OwnNumber about
	// money; 0 if it has none.
	OwnUSD    float64 `json:"own_usd,omitzero"`
	OwnNumber int     `json:"own_number,omitzero"`
	// Run counts the runs that were admitted before this one; an older intent has a smaller one.
	Run int `json:"run,omitzero"`
	// Active says that a run of the intent has begun and not ended.
	Active bool `json:"active,omitzero"`
}

// Call is a call of an agent that costs something.
type Call struct {
	Intent forge.IntentID
	// Number is the number of the message that asked for it; see forge.ReserveBudget.
	Number  int
	Attempt forge.Attempt
	// Limits are the budgets as the intent knows them.
	Limits forge.Budget
	// OwnUSD is the budget that the intent has by itself; 0 if it has none.
	OwnUSD float64
	// USD is the amount that the call asks for, then the amount granted; 0: refused.
	USD float64
	// UnderWay says that the call continues work that others have paid for.
	UnderWay bool
	// Refusal says for a person why there is no budget for the call.
	Refusal string
	// Withdrawn is when the call was ended while its costs were still to come; zero if it was
	// not. They come soon, or never: the money stays set aside, but no other call waits for it.
	Withdrawn time.Time
}

// lateBill is how long the money of a call that was withdrawn is kept for its costs. A worker
// stops an agent in seconds, and tells as soon as it can.
const lateBill = time.Hour

// Open makes an account for an intent whose run begins. Whatever it asked for in
// a run before is released.
func (l *Ledger) Open(out *outbox.Messages, id, parent forge.IntentID, now time.Time) {
	a := l.Accounts[id]
	l.Opened++
	a.Parent, a.Run, a.Active = parent, l.Opened, true
	l.account(id, a)
	l.release(out, now, func(c Call) bool { return c.Intent == id && c.Withdrawn.IsZero() })
}

// account sets the account of an intent.
func (l *Ledger) account(id forge.IntentID, a Account) {
	if l.Accounts == nil {
		l.Accounts = map[forge.IntentID]Account{}
	}
	l.Accounts[id] = a
	// The list follows from the accounts. It is kept beside them, and nowhere
	// else is one of the two changed alone.
	switch i, known := slices.BinarySearch(l.Running, id); {
	case a.Active && !known:
		l.Running = slices.Insert(l.Running, i, id)
	case !a.Active && known:
		l.Running = slices.Delete(l.Running, i, i+1)
	}
}

// Reserve asks for budget for one call of an intent whose run is active. A call
// that was answered is answered again.
func (l *Ledger) Reserve(out *outbox.Messages, c Call, now time.Time) (forge.Decision, error) {
	same := func(o Call) bool { return o.Intent == c.Intent && o.Attempt == c.Attempt }
	a := l.Accounts[c.Intent]
	at := slices.IndexFunc(l.Waiting, same)
	switch {
	case at >= 0 && c.Number > l.Waiting[at].Number: // it gave up the earlier question
		l.Waiting[at].Number = c.Number
		return forge.Applied, nil
	case at >= 0:
		return rule.Ignore("%s waits for budget already", c.Attempt)
	case c.Number <= a.Number && !slices.Contains(a.Open, c.Attempt):
		return rule.Ignore("%s is accounted for already", c.Attempt)
	}
	for _, list := range [][]Call{l.Reserved, l.Refused} {
		if i := slices.IndexFunc(list, same); i >= 0 {
			again := c.Number > list[i].Number
			list[i].Number = max(list[i].Number, c.Number)
			list[i].answer(out)
			if again {
				return forge.Applied, nil
			}
			return rule.Ignore("%s was answered already", c.Attempt)
		}
	}
	l.Limits, l.Known = c.Limits, true
	l.own(c.Intent, c.Number, c.OwnUSD)
	l.Waiting = append(l.Waiting, c)
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
	l.own(id, st.Number, st.OwnUSD)
	l.book(id, st.SpentUSD, now)
	l.expect(id, st.Unbilled, now)
	l.release(out, now, func(c Call) bool {
		return c.Intent == id && c.Number < st.Number && !slices.Contains(st.Open, c.Attempt) && !slices.Contains(st.Unbilled, c.Attempt)
	})
	return forge.Applied, nil
}

// expect notes calls that were withdrawn and whose costs are still to come.
func (l *Ledger) expect(id forge.IntentID, unbilled []forge.Attempt, now time.Time) {
	for i := range l.Reserved {
		if c := &l.Reserved[i]; c.Intent == id && c.Withdrawn.IsZero() && slices.Contains(unbilled, c.Attempt) {
			c.Withdrawn = now
		}
	}
}

// reserved returns the money of the calls that a test selects, and whether some of it may come
// back when one of them ends.
func (l *Ledger) reserved(which func(forge.IntentID) bool) (usd float64, more bool) {
	for i := range l.Reserved {
		if c := &l.Reserved[i]; which(c.Intent) {
			usd += c.USD
			more = more || c.Withdrawn.IsZero()
		}
	}
	if l.ReflectionUSD > 0 && which(l.Reflected) {
		usd += l.ReflectionUSD
		more = true
	}
	return usd, more
}

// Planned takes over the limits of an intent that has a plan, before its children begin.
func (l *Ledger) Planned(id forge.IntentID, p *forge.RunPlanned) {
	l.Limits, l.Known = p.Budget, true
	l.own(id, p.Number, p.OwnUSD)
}

// own notes the budget that an intent has by itself, unless a later message has said it.
func (l *Ledger) own(id forge.IntentID, number int, usd float64) {
	if a := l.Accounts[id]; number >= a.OwnNumber {
		a.OwnNumber, a.OwnUSD = number, usd
		l.account(id, a)
	}
}

// root returns the intent at the top of the tree that an intent is in. Its budget holds for
// all of the tree.
func (l *Ledger) root(id forge.IntentID) forge.IntentID {
	for range maxDepth {
		parent := l.Accounts[id].Parent
		if parent == "" {
			break
		}
		id = parent
	}
	return id
}

// maxDepth bounds how deep a tree of intents is; policies allow much less.
const maxDepth = 100

// Close books the total that an intent has spent when its run ends, and releases
// all its reservations.
func (l *Ledger) Close(out *outbox.Messages, id forge.IntentID, spentUSD float64, unbilled []forge.Attempt, now time.Time) {
	a := l.Accounts[id]
	a.Active = false
	l.account(id, a)
	l.book(id, spentUSD, now)
	l.expect(id, unbilled, now)
	l.release(out, now, func(c Call) bool { return c.Intent == id && !slices.Contains(unbilled, c.Attempt) })
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
	more := total - a.SpentUSD
	a.SpentUSD = total
	l.Accounts[id] = a
	root := l.root(id)
	top := l.Accounts[root]
	top.TreeUSD += more
	l.Accounts[root] = top
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

// ReserveReflection reserves budget for a reflection, which is charged to the intent
// on. It returns the amount in US dollars, 0 for no limit. wait means that the caller
// asks again later. Otherwise a refusal tells a person why there is no budget; own
// reports whether the intent's own budget is used up rather than that of the project.
func (l *Ledger) ReserveReflection(on forge.IntentID, now time.Time) (usd float64, refusal string, own, wait bool) {
	if limit := l.treeLimit(l.root(on)); limit > 0 || l.Limits.Shared() {
		l.turnDay(now)
		b := l.Limits
		b.IntentUSD = limit
		c := &Call{Intent: on, Limits: l.Limits, USD: Slice(b)}
		usd, refusal, wait = l.shared(c)
		if !wait && refusal == "" {
			usd, refusal, wait = l.tree(c, usd)
			own = refusal != ""
		}
	}
	if !wait && refusal == "" {
		l.ReflectionUSD, l.Reflected = usd, on
	}
	return usd, refusal, own, wait
}

// ReleaseReflection releases the reservation of the reflection that ended.
func (l *Ledger) ReleaseReflection(out *outbox.Messages, now time.Time) {
	l.ReflectionUSD, l.Reflected = 0, ""
	l.grant(out, now)
}

// Repeat sends again every answer that may come long after its question.
func (l *Ledger) Repeat(out *outbox.Messages) {
	for _, list := range [][]Call{l.Reserved, l.Refused} {
		for i := range list {
			if list[i].Withdrawn.IsZero() {
				list[i].answer(out)
			}
		}
	}
}

// answer tells an intent whether the call has its money.
func (c *Call) answer(out *outbox.Messages) {
	out.Add(c.Intent, fmt.Sprintf("funded/%s/%s/%d", c.Intent, c.Attempt, c.Number),
		&forge.BudgetReserved{Attempt: c.Attempt, USD: c.USD, Reason: c.Refusal, Number: c.Number})
}
