package cli

import (
	"testing"
	"time"
)

func TestParseAge(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "12h": 12 * time.Hour, "30d": 720 * time.Hour, "0d": 0, "1h30m": 90 * time.Minute} {
		if got, err := parseAge(text); got != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"d", "-1d", "-1h", "soon", "1.5d", "999999999d", "7"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func TestMoreMoney(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "2": 2, "$0.5": 0.5} {
		if got, err := moreMoney(text); err != nil || got.BudgetUSD != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"-1", "0", "NaN", "Inf", "1e9", "much"} {
		if _, err := moreMoney(text); err == nil {
			t.Errorf("%q is an amount", text)
		}
	}
}

// A number stands for what is suggested, unless that is what is suggested.
func TestChosen(t *testing.T) {
	for _, c := range []struct {
		suggested   []string
		typed, want string
	}{
		{[]string{"red", "blue"}, " 2 ", "blue"},
		{[]string{"red", "blue"}, "3", "3"},
		{[]string{"red", "blue"}, "0", "0"},
		{[]string{"10", "2"}, "2", "2"},
		{nil, "1", "1"},
		{nil, "  ", ""},
	} {
		if got := chosen(&question{Suggested: c.suggested}, c.typed); got != c.want {
			t.Errorf("%q of %q is %q, want %q", c.typed, c.suggested, got, c.want)
		}
	}
}
