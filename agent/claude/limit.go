package claude

import (
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

const (
	// justEnded is how long ago a limit may have ended that is still told: the
	// CLI tries again by itself, and takes its time to end.
	justEnded = 5 * time.Minute
	// afterEnd is when to try again then. It paces a provider that names such an end each time.
	afterEnd = 30 * time.Second
)

// limitEnd returns when a limit ends, from the message or else the last
// rate_limit_event; zero if neither says. One that has just ended ends soon: without an end, the
// account would be left alone for much longer.
func (t *outputReader) limitEnd(said string, now time.Time) time.Time {
	at := resetIn(said, now)
	if at.IsZero() {
		at = t.limitReset
	}
	if !at.IsZero() && !at.After(now) && now.Sub(at) < justEnded {
		return now.Add(afterEnd).UTC()
	}
	return at
}

var (
	// "Claude AI usage limit reached|1790000000", of older versions.
	resetEpoch = pattern.New(`\|(\d{10})\b`)
	// "You've hit your weekly limit · resets Dec 5, 2027, 9:30am (Europe/Paris)": the day
	// and the year are missing for the current ones.
	resetClock = pattern.New(`(?i)resets?(?: at)?\s+(?:([a-z]{3}) (\d{1,2})(?:, (\d{4}))?(?:,| at) )?` +
		`(\d{1,2})(?::(\d{2}))?[\s\x{202f}]*([ap])m(?:\s+\(([A-Za-z0-9_+/-]+)\))?`)
)

// resetIn returns the end of a limit that a message names; zero if it names none.
func resetIn(said string, now time.Time) time.Time {
	if m := resetEpoch.FindStringSubmatch(said); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64) // ten digits
		return time.Unix(n, 0).UTC()
	}
	m := resetClock.FindStringSubmatch(said)
	if m == nil {
		return time.Time{}
	}
	zone := time.Local // the CLI shows the machine's time if it names no other
	if m[7] != "" {
		var err error
		if zone, err = time.LoadLocation(m[7]); err != nil {
			return time.Time{}
		}
	}
	hour, _ := strconv.Atoi(m[4])
	minute, _ := strconv.Atoi(m[5])
	if hour < 1 || hour > 12 || minute > 59 {
		return time.Time{}
	}
	if hour %= 12; strings.EqualFold(m[6], "p") {
		hour += 12
	}
	return nextTime(m[1], m[2], m[3], hour, minute, now.In(zone))
}

// nextTime returns the named day at that time, or, without a day, its first occurrence
// after now. The zone is that of now.
func nextTime(month, day, year string, hour, minute int, now time.Time) time.Time {
	if month == "" {
		at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, now.Location())
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at.UTC()
	}
	date, err := time.Parse("Jan 2", month+" "+day)
	if err != nil {
		return time.Time{}
	}
	// Without a year the current one is meant.
	y, err := strconv.Atoi(year)
	if err != nil {
		y = now.Year()
	}
	return time.Date(y, date.Month(), date.Day(), hour, minute, 0, 0, now.Location()).UTC()
}
