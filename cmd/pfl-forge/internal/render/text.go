package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
)

// Age returns a duration in its one or two largest units: 42s, 5m, 3h12m, 2d.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 10*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// Took returns how long something short took: 0.4s, 12s, 3m05s.
func Took(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// Tokens returns a number of tokens: 812, 12.3k, 4.1M; empty for none.
func Tokens(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

// Cost returns an amount of US dollars: $0.12; empty for none.
func Cost(usd float64) string {
	if usd == 0 {
		return ""
	}
	return fmt.Sprintf("$%.2f", usd)
}

// Fresh returns the tokens of agent calls that no cache spared: those sent and not cached, and
// those written by models.
func Fresh(u *forge.Usage) int64 { return u.InputTokens + u.OutputTokens }

// Cached returns the tokens of agent calls that were read from, or written to, a model's
// cache. They cost a tenth to twice of others, so they are never added to those.
func Cached(u *forge.Usage) int64 { return u.CacheReadTokens + u.CacheWriteTokens }

// ConsumedOf returns tokens and cost of agent calls, or empty.
func ConsumedOf(u *forge.Usage) string { return Consumed(Fresh(u), Cached(u), u.CostUSD) }

// Consumed returns "1.2k tokens, 30.1k cached, $0.12", without what is zero.
func Consumed(tokens, cached int64, usd float64) string {
	var parts []string
	if tokens != 0 {
		parts = append(parts, Tokens(tokens)+" tokens")
	}
	if cached != 0 {
		parts = append(parts, Tokens(cached)+" cached")
	}
	if usd != 0 {
		parts = append(parts, Cost(usd))
	}
	return strings.Join(parts, ", ")
}

// Doing returns an intent's activity, or the reason why it waits, for a list.
// Points in time in it are durations from now on.
func Doing(s *forge.Summary) string { return FromNow(FirstLine(doing(s)), time.Now()) }

// WithoutRun says of an intent whose commands no worker takes, since nothing
// runs in its repository, what it waits for.
func WithoutRun(s *forge.Summary) {
	if s.Waiting == "" && len(s.Open) > 0 {
		s.Activity = "waits for pfl-forge run"
	}
}

// Outcome returns the outcome of an attempt as tables show it: a review that is ok has approved.
func Outcome(step forge.Step, outcome string) string {
	if step == forge.StepReview && outcome == "ok" {
		return "approved"
	}
	return outcome
}

// FirstLine returns the first line of a reason, which says the cause; what a command printed
// follows it.
func FirstLine(reason string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(reason), "\n")
	return line
}

// doing is Doing with points in time. For someone who has to act the reason
// says more than the activity.
func doing(s *forge.Summary) string {
	switch {
	case s.Waiting == forge.WaitingFailed:
		return s.Reason
	case s.Waiting == forge.WaitingClarification && s.Reason != "":
		return s.Reason // it counts the questions
	case s.Waiting != "" && s.Reason != "":
		return s.Activity + ": " + s.Reason
	case s.Activity != "":
		return s.Activity
	}
	return s.Reason
}

// momentUTC matches a point in time as the rules write it into an activity.
var momentUTC = pattern.New(`\b(?:at|until) (\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?: UTC|Z)`)

// sinceUTC matches how the rules write into a reason since when something does not work; the first
// group is how it is said of what has only begun.
var sinceUTC = pattern.New(`\b(is red|cannot be reached|refuses pushes|refuses all calls|can do a step) since (\d{4}-\d\d-\d\d \d\d:\d\d) UTC`)

// lasting maps the first group of sinceUTC to how it is said of what has lasted for a while.
var lasting = map[string]string{
	"is red": "has been red", "cannot be reached": "has been out of reach", "refuses pushes": "has refused pushes",
	"refuses all calls": "has refused all calls", "can do a step": "has been able to do a step",
}

// FromNow returns a text of a machine with durations instead of its points in time: "tries
// again in 5m" instead of "tries again at 2026-03-01 12:00:00 UTC". What is past is "now".
func FromNow(text string, now time.Time) string {
	text = sinceUTC.ReplaceAllStringFunc(text, func(found string) string {
		parts := sinceUTC.FindStringSubmatch(found)
		since, err := time.Parse("2006-01-02 15:04", parts[2])
		switch lasts := now.Sub(since); {
		case err != nil:
			return found
		case lasts < 2*time.Minute: // it was written without seconds
			return parts[1]
		default:
			return lasting[parts[1]] + " for " + Age(lasts)
		}
	})
	return momentUTC.ReplaceAllStringFunc(text, func(found string) string {
		parts := momentUTC.FindStringSubmatch(found)
		at, err := time.Parse(time.DateTime, parts[1]+" "+parts[2])
		switch left := at.Sub(now); {
		case err != nil:
			return found
		case left <= 0:
			return "now"
		case strings.HasPrefix(found, "until"):
			return "for another " + Age(left)
		default:
			return "in " + Age(left)
		}
	})
}

// Count returns "1 task" or "3 tasks".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Risk returns "medium risk" for the risk of an intent; empty for none.
func Risk(r forge.Risk) string {
	switch r {
	case "":
		return ""
	case forge.RiskMed:
		return "medium risk"
	default:
		return string(r) + " risk"
	}
}

// Size returns a number of bytes: 812 B, 12.3 KiB, 4.1 GiB.
func Size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/1024, 0
	for ; size >= 1024 && unit < 3; unit++ {
		size /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGT"[unit])
}

// Gist returns one line about a failure, its cause first.
func Gist(message string) string { return cause.Gist(message) }
