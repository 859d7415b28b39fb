package gateway

import (
	"net/http"
	"strconv"
	"time"
)

// limitedUntil returns the time before which a repeated request is useless, from the
// headers of a refusal; zero if they do not say. Of several times the latest counts.
func limitedUntil(resp *http.Response, now time.Time) time.Time {
	// Other answers are no refusals, whatever headers they have.
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusOverloaded:
	default:
		return time.Time{}
	}
	var until time.Time
	later := func(t time.Time) {
		if t.After(until) {
			until = t
		}
	}
	// Retry-After is a number of seconds, or a date.
	after := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(after, 64); err == nil && seconds > 0 && seconds < maxWait.Seconds() {
		later(now.Add(time.Duration(seconds * float64(time.Second))))
	} else if at, err := http.ParseTime(after); err == nil {
		later(at)
	}
	// A subscription's reset time counts only for a rejection: its window may end long
	// after a retry makes sense.
	if resp.Header.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" {
		if unix, err := strconv.ParseInt(resp.Header.Get("Anthropic-Ratelimit-Unified-Reset"), 10, 64); err == nil {
			later(time.Unix(unix, 0))
		}
	}
	if until.After(now.Add(maxWait)) {
		return time.Time{} // implausible
	}
	return until
}

// Anthropic's status for an overloaded model, and the longest plausible limit.
const (
	statusOverloaded = 529
	maxWait          = 31 * 24 * time.Hour
)
