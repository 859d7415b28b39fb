package claude

import (
	"testing"
	"time"
)

func TestResetIn(t *testing.T) {
	now := time.Date(2026, 12, 4, 15, 0, 0, 0, time.UTC)
	for said, want := range map[string]string{
		"Claude AI usage limit reached|1790000000":                              "2026-09-21T14:13:20Z",
		"You've hit your session limit · resets 8:30pm (UTC)":                   "2026-12-04T20:30:00Z",
		"You've hit your limit · resets 9am (America/Chicago)":                  "2026-12-05T15:00:00Z",
		"You've hit your session limit · resets 3:20am (Asia/Calcutta)":         "2026-12-04T21:50:00Z",
		"Your limit will reset at 12am (UTC).":                                  "2026-12-05T00:00:00Z",
		"You've hit your weekly limit · resets Dec 7, 9am (Europe/Paris)":       "2026-12-07T08:00:00Z",
		"You've hit your weekly limit · resets Jan 2, 2027, 9:30\u202fPM (UTC)": "2027-01-02T21:30:00Z",
		"limit · resets Dec 7 at 12pm (UTC)":                                    "2026-12-07T12:00:00Z",
		"resets 9am (No/Where)":                                                 "",
		"resets 13am (UTC)":                                                     "",
		"resets 0am (UTC)":                                                      "",
		"resets Foo 7, 9am (UTC)":                                               "",
		"slow down":                                                             "",
		"limit|12345":                                                           "",
	} {
		got := resetIn(said, now)
		if want == "" {
			if !got.IsZero() {
				t.Errorf("%q: got %s", said, got)
			}
			continue
		}
		if got.Format(time.RFC3339) != want {
			t.Errorf("%q: got %s, want %s", said, got.Format(time.RFC3339), want)
		}
	}
}

// A limit that ended while the CLI told of it is tried again soon, and not as
// if its end were unknown.
func TestLimitThatHasJustEnded(t *testing.T) {
	now := time.Unix(1_790_000_000, 0).UTC()
	for said, want := range map[string]time.Time{
		"Claude AI usage limit reached|1790000060": now.Add(time.Minute),
		"Claude AI usage limit reached|1790000000": now.Add(afterEnd),
		"Claude AI usage limit reached|1789999990": now.Add(afterEnd),
		"Claude AI usage limit reached|1789990000": now.Add(-10_000 * time.Second), // garbage, which counts as none
		"no end": {},
	} {
		if got := new(outputReader).limitEnd(said, now); !got.Equal(want) {
			t.Errorf("%q: %s, want %s", said, got, want)
		}
	}
	event := outputReader{limitReset: now.Add(-time.Second)}
	if got := event.limitEnd("no end", now); !got.Equal(now.Add(afterEnd)) {
		t.Errorf("by an event: %s", got)
	}
}
