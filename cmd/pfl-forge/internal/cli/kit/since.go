package kit

import (
	"fmt"
	"time"
)

// ParseSince parses the value of a flag such as --since: a point in time, or how long before now
// it is. A time of day is the last one that is over. The zero time stands for an empty value.
func ParseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	if t, err := time.ParseInLocation("15:04", s, time.Local); err == nil {
		local := now.In(time.Local)
		at := time.Date(local.Year(), local.Month(), local.Day(), t.Hour(), t.Minute(), 0, 0, time.Local)
		if at.After(now) {
			at = at.AddDate(0, 0, -1)
		}
		return at, nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a duration such as 10m nor a time such as 10:00, 2026-03-01T12:00:00Z or 2026-03-01", s)
}
