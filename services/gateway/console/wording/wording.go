// Package wording has the words of pages for states, numbers and times. It is pure.
package wording

import (
	"fmt"
	"strings"
	"time"
)

// states has the names of states on pages, where they differ from those of the API.
var states = map[string]string{
	"approval": "needs approval", "clarification": "has questions", "failed": "failed", "dirty": "files are in the way", "base": "base branch is red",
	"budget": "over budget", "pull_request": "pull request changed", "paused": "paused", "med": "medium", "executing": "in progress", "error": "error",
}

// State returns the name of a status, or of the act that an intent waits for.
func State(value any) string {
	s := fmt.Sprint(value)
	if w := states[s]; w != "" {
		return w
	}
	return strings.ReplaceAll(s, "_", " ")
}

// Plural returns a number with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Age returns how long ago something was.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}
