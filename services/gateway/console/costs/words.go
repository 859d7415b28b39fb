package costs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/document"
)

// USD returns an amount of dollars as people read it.
func USD(amount float64) string {
	switch {
	case math.IsNaN(amount) || math.IsInf(amount, 0):
		return "unknown"
	case amount < 0:
		return "-" + strings.TrimPrefix(USD(-amount), "under ")
	case amount > 0 && amount < 0.01:
		return "under $0.01"
	case amount >= 1e9:
		return fmt.Sprintf("$%.3g", amount)
	}
	whole, cents, _ := strings.Cut(strconv.FormatFloat(amount, 'f', 2, 64), ".")
	n, _ := strconv.ParseInt(whole, 10, 64) // it has ten digits at most
	return "$" + Count(n) + "." + cents
}

// Count returns a number with commas between its thousands.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// Budget is a limit of the project with what is left of it.
type Budget struct {
	document.CostBudget
	// Percent is the part that is spent, from 0 to 100.
	Percent float64
	// Left and Forecast are in words. Forecast is empty where nothing can be said.
	Left, Forecast string
}

// Low says that less than a tenth is left.
func (b *Budget) Low() bool { return b.Percent > 90 }

// Name returns the words that follow "the budget of".
func (b *Budget) Name() string {
	switch b.Of {
	case "project":
		return "the project"
	case "day":
		return "today (UTC)"
	}
	return b.Of
}

// budgetOf describes a budget, with a forecast from the days before today.
func budgetOf(b document.CostBudget, days []document.CostRow, today time.Time) Budget {
	percent := 100.0
	if part := b.SpentUSD / b.BudgetUSD * 100; part >= 0 && part < 100 {
		percent = part
	}
	return Budget{b, percent, left(b.LeftUSD, b.BudgetUSD), forecast(b, days, today)}
}

// left says in words what is left of a budget.
func left(usd, of float64) string {
	switch {
	case usd < 0:
		return fmt.Sprintf("overspent by %s of %s", USD(-usd), USD(of))
	case usd == 0:
		return fmt.Sprintf("nothing left of %s", USD(of))
	}
	return fmt.Sprintf("%s left of %s", USD(usd), USD(of))
}

const (
	// rateDays is how many days with calls a forecast is made of: a week of work.
	rateDays = 7
	// furthest is how many days ahead a forecast names a date.
	furthest = 365
)

// rate returns the mean of the last days with calls before today, which is not over,
// and how many days those are: 0 if there is none, or nothing can be said by them.
func rate(days []document.CostRow, today time.Time) (usd float64, of int) {
	rows := slices.Clone(days)
	slices.SortFunc(rows, func(a, b document.CostRow) int { return strings.Compare(b.Key, a.Key) })
	for i := range rows {
		if of < rateDays && rows[i].Key < today.Format(time.DateOnly) {
			usd += rows[i].CostUSD
			of++
		}
	}
	if usd /= float64(of); !(usd > 0) || math.IsInf(usd, 0) {
		return 0, 0
	}
	return usd, of
}

// forecast says in words when a budget is spent if days go on as the last ones with calls.
// A weekend without calls is not foreseen, so the day that it names is rather too early.
func forecast(b document.CostBudget, days []document.CostRow, today time.Time) string {
	usd, of := rate(days, today)
	if of == 0 || !(b.LeftUSD > 0) || math.IsInf(b.LeftUSD, 0) {
		return ""
	}
	begins := fmt.Sprintf("At the rate of the last %d days with calls, %s a day, ", of, USD(usd))
	if of == 1 {
		begins = fmt.Sprintf("At the rate of the last day with calls, %s, ", USD(usd))
	}
	switch b.Of {
	case "day":
		if usd > b.BudgetUSD {
			return begins + "the budget of a day is spent before the day ends."
		}
		if share := usd / b.BudgetUSD * 100; share < 1 {
			return begins + "a day takes less than 1% of its budget."
		}
		return begins + fmt.Sprintf("a day takes %.0f%% of its budget.", usd/b.BudgetUSD*100)
	case "project":
		now := 0.0
		for i := range days {
			if days[i].Key == today.Format(time.DateOnly) {
				now = days[i].CostUSD
			}
		}
		rest := b.LeftUSD - max(0, usd-now) // what today is going to take
		n := math.Ceil(rest / usd)
		switch {
		case math.IsNaN(n):
			return ""
		case n <= 0:
			return begins + "the budget of the project is spent today."
		case n > furthest:
			return begins + "the budget of the project lasts for more than a year."
		}
		return begins + "the budget of the project is spent on " + today.AddDate(0, 0, int(n)).Format("2 January 2006") + "."
	}
	return ""
}
