package pending

import (
	"testing"
)

func TestMoreMoney(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "2": 2, "$0.5": 0.5} {
		if got, err := parseBudget(text); err != nil || got.BudgetUSD != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"-1", "0", "NaN", "Inf", "1e9", "much"} {
		if _, err := parseBudget(text); err == nil {
			t.Errorf("%q is an amount", text)
		}
	}
}
