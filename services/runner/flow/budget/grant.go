package budget

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// grant answers the calls that wait, in order, as far as it is certain whether there is budget
// for them. A call that waits for the money of its own tree lets those of other trees pass.
func (l *Ledger) grant(out *outbox.Messages, now time.Time) {
	l.turnDay(now)
	l.Reserved = slices.DeleteFunc(l.Reserved, func(c Call) bool { return !c.Withdrawn.IsZero() && now.Sub(c.Withdrawn) > lateBill })
	slices.SortStableFunc(l.Waiting, l.order)
	held := map[forge.IntentID]bool{}
	for i := 0; i < len(l.Waiting); {
		c := l.Waiting[i]
		root := l.root(c.Intent)
		if held[root] {
			i++
			continue
		}
		usd, refusal, wait := l.shared(&c)
		if wait {
			return
		}
		if refusal == "" {
			if usd, refusal, wait = l.tree(&c, usd); wait {
				held[root] = true
				i++
				continue
			}
		}
		l.Waiting = slices.Delete(l.Waiting, i, i+1)
		c.USD, c.Refusal = usd, refusal
		if usd > 0 {
			l.Reserved = append(l.Reserved, c)
		} else {
			l.Refused = append(l.Refused, c)
		}
		c.answer(out)
	}
}

// order compares two calls by who is answered first. It puts work under way before work that
// begins, and of each the oldest intent first, because what is left of a budget is to finish
// something.
func (l *Ledger) order(a, b Call) int {
	rank := func(c Call) int {
		switch {
		case c.UnderWay:
			return 0
		case l.Accounts[c.Intent].SpentUSD > 0:
			return 1
		}
		return 2
	}
	// A call that is under way comes before one of the same intent that begins something.
	return cmp.Or(cmp.Compare(rank(a)/2, rank(b)/2), cmp.Compare(l.Accounts[a.Intent].Run, l.Accounts[b.Intent].Run), cmp.Compare(rank(a), rank(b)))
}

// shared decides on one call by the limits of the project and of the day.
func (l *Ledger) shared(c *Call) (usd float64, refusal string, wait bool) {
	reserved, more := l.reserved(func(forge.IntentID) bool { return true })
	usd = c.USD
	for _, pool := range []struct {
		limit, spent float64
		refusal      string
	}{
		{c.Limits.ProjectUSD, l.SpentUSD, "the project's budget of $%.2f is used up ($%.2f spent); raise budget.project_usd in pfl-forge.yaml and commit it"},
		{c.Limits.DayUSD, l.TodayUSD, "the day's budget of $%.2f is used up ($%.2f spent since 00:00 UTC); wait for tomorrow, or " +
			"raise budget.day_usd in pfl-forge.yaml and commit it"},
	} {
		if pool.limit <= 0 {
			continue
		}
		left := pool.limit - pool.spent - reserved
		if more && l.begins(c) && left < usd*float64(max(1, l.begun())) {
			return 0, "", true // what is under way may need it to be finished
		}
		granted, hold := Room(left, usd, more)
		if hold {
			return 0, "", true
		}
		if granted == 0 {
			return 0, fmt.Sprintf(pool.refusal, pool.limit, pool.spent) + fmt.Sprintf(", then: pfl-forge retry %s", c.Intent), false
		}
		usd = granted
	}
	return usd, "", false
}

// begins reports whether a call is the first of its intent.
func (l *Ledger) begins(c *Call) bool { return !c.UnderWay && l.Accounts[c.Intent].SpentUSD == 0 }

// begun counts the intents that have spent something and have not ended.
func (l *Ledger) begun() int {
	n := 0
	for _, id := range l.Running {
		if l.Accounts[id].SpentUSD > 0 {
			n++
		}
	}
	return n
}

// treeLimit returns the budget of an intent without a parent: its own, or the project's for
// each; 0 if there is none.
func (l *Ledger) treeLimit(root forge.IntentID) float64 {
	return cmp.Or(l.Accounts[root].OwnUSD, l.Limits.IntentUSD)
}

// tree decides on one call by the budget of the tree that its intent is in.
func (l *Ledger) tree(c *Call, wish float64) (usd float64, refusal string, wait bool) {
	root := l.root(c.Intent)
	limit := l.treeLimit(root)
	if limit <= 0 || c.Intent == "" {
		return wish, "", false
	}
	reserved, more := l.reserved(func(id forge.IntentID) bool { return l.root(id) == root })
	spent := l.Accounts[root].TreeUSD
	usd, wait = Room(limit-spent-reserved, wish, more)
	switch {
	case usd > 0 || wait:
		return usd, "", wait
	case root == c.Intent:
		return 0, fmt.Sprintf("the intent's budget of $%.2f is used up ($%.2f spent); raise it: pfl-forge retry %s --budget <usd>", limit, spent, root), false
	}
	return 0, fmt.Sprintf("the budget of %q, which this intent is a part of, is used up ($%.2f of $%.2f spent); raise it for all parts: "+
		"pfl-forge retry %s --budget <usd>", root, spent, limit, root), false
}
