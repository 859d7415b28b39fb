package render

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		Age(-time.Second):                 "0s",
		Age(42 * time.Second):             "42s",
		Age(59*time.Minute + time.Second): "59m",
		Age(3*time.Hour + 2*time.Minute):  "3h02m",
		Age(30 * time.Hour):               "30h",
		Age(72 * time.Hour):               "3d",
		Took(400 * time.Millisecond):      "0.4s",
		Took(12*time.Second + 1):          "12s",
		Took(185 * time.Second):           "3m05s",
		Tokens(0):                         "",
		Tokens(812):                       "812",
		Tokens(12_345):                    "12.3k",
		Tokens(4_100_000):                 "4.1M",
		Cost(0):                           "",
		Cost(0.125):                       "$0.12",
		Count(1, "task"):                  "1 task",
		Count(0, "task"):                  "0 tasks",
		Consumed(0, 0, 0):                 "",
		Consumed(0, 0, 1):                 "$1.00",
		ConsumedOf(&forge.Usage{InputTokens: 3, OutputTokens: 2}):                                                                "5 tokens",
		ConsumedOf(&forge.Usage{InputTokens: 3, OutputTokens: 2, CacheReadTokens: 30_000, CacheWriteTokens: 100, CostUSD: 0.12}): "5 tokens, 30.1k cached, $0.12",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTally(t *testing.T) {
	all := []forge.Summary{
		{Status: forge.StatusDone},
		{Status: forge.StatusBlocked, Waiting: forge.WaitingFailed},
		{Status: forge.StatusProposed, Waiting: forge.WaitingApproval},
		{Status: forge.StatusExecuting},
		{Status: forge.StatusRejected},
		{Status: forge.StatusCancelled},
		{Status: forge.StatusError, Waiting: forge.WaitingFailed},
	}
	if got, want := Tally(all), "1 open, 1 waits for you, 1 done, 1 blocked, 1 failed, 1 rejected, 1 cancelled"; got != want {
		t.Errorf("Tally = %q, want %q", got, want)
	}
	if got, want := Tally(append(all, all[2])), "1 open, 2 wait for you, 1 done, 1 blocked, 1 failed, 1 rejected, 1 cancelled"; got != want {
		t.Errorf("Tally = %q, want %q", got, want)
	}
	if got := Tally(nil); got != "no intents" {
		t.Errorf("Tally of none = %q", got)
	}
}

func TestFromNow(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"tries again at 2026-03-01 12:05:30 UTC":                               "tries again in 5m",
		"tries again at 2026-03-01 11:59:00 UTC":                               "tries again now",
		"claude is at its limit until 2026-03-01T15:12:00Z":                    "claude is at its limit for another 3h12m",
		"the base branch is red since 2026-03-01 09:48 UTC, at 1a2b: it fails": "the base branch has been red for 2h12m, at 1a2b: it fails",
		"the git origin refuses pushes since 2026-03-01 11:59 UTC: no":         "the git origin refuses pushes: no",
		"the git origin cannot be reached since 2026-03-01 11:00 UTC: no":      "the git origin has been out of reach for 1h00m: no",
		"no replica can do a step since 2026-03-01 11:00 UTC: no":              "no replica has been able to do a step for 1h00m: no",
		"it was 2026-03-01 12:05:30 UTC, at least in the log":                  "it was 2026-03-01 12:05:30 UTC, at least in the log",
	} {
		if got := FromNow(text, now); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
