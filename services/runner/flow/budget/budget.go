// Package budget accounts for money: Slice and Room say how much one call of an agent may
// cost, and Ledger is the account of the budgets that a project's intents share.
//
// A project asks the Ledger before it lets an intent send a call (Reserve) and when a
// call ended (Commit); package dispatch uses Room for the intent's own share. A call
// waits in the Ledger while calls under way may still give something back, and is refused
// after that. Every operation can be repeated without effect. Amounts are US dollars.
package budget

import "github.com/pfl-forge/pfl-forge"

const (
	// SmallestCall is the least, in US dollars, that a call is started with,
	// when nothing more can come.
	SmallestCall = 0.01
	// smallestShare is the least that is set aside for a call by default: with less it could
	// end before it has done anything. So few calls run at once where the budget is small.
	smallestShare = 0.50
)

// Own returns the budget that an intent has by itself; 0 if it has none. A
// system (foreign) may ask for less than the project allows each, not for more.
func Own(in *forge.Intent, b forge.Budget, foreign bool) float64 {
	if foreign && b.IntentUSD > 0 && in.BudgetUSD > b.IntentUSD {
		return 0
	}
	return in.BudgetUSD
}

// Slice returns the amount to reserve for one call: enough to work with, and
// little enough that several calls fit into the budget.
func Slice(b forge.Budget) float64 {
	if b.CallUSD > 0 {
		return b.CallUSD
	}
	usd := float64(forge.DefaultCallUSD)
	for _, limit := range []float64{b.IntentUSD, b.ProjectUSD, b.DayUSD} {
		if limit > 0 {
			usd = min(usd, max(limit/4, min(smallestShare, limit)))
		}
	}
	return max(usd, SmallestCall)
}

// Room decides on one call, given what is left of a budget and whether more of it
// may come back from calls that run. It returns what the call may cost; 0 if there
// is no budget for it. wait means that neither is certain yet.
func Room(left, wish float64, more bool) (usd float64, wait bool) {
	switch {
	case left >= wish:
		return wish, false
	case more:
		return 0, true
	case left >= SmallestCall:
		return left, false
	}
	return 0, false
}
