package clean

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
