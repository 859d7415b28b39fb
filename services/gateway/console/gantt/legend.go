package gantt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/document"
)

// Named names a span in words: the step with its attempt, or the reason to wait.
func Named(s document.Span) string {
	switch s.Kind {
	case document.SpanAttempt, document.SpanQueue:
		return fmt.Sprintf("%s %d", s.Step, s.Attempt)
	case document.SpanMerge:
		return "merge queue"
	case document.SpanLocks:
		return "file locks"
	case document.SpanPerson:
		return "waits for a person"
	case document.SpanBudget:
		return "waits for budget"
	case document.SpanForge:
		return "waits at its pull request"
	case document.SpanOthers:
		return "waits for other intents"
	case document.SpanLater:
		return "tries again later"
	}
	return strings.ReplaceAll(string(s.Kind), "_", " ")
}

// Class returns the class of a bar: what it is, and of an attempt how it ended.
func Class(s document.Span) string {
	switch {
	case s.Kind != document.SpanAttempt:
		return string(s.Kind)
	case s.To.IsZero():
		return "attempt running"
	case s.Outcome == "ok":
		return "attempt good"
	}
	return "attempt bad"
}

// Swatch explains the colour of a bar.
type Swatch struct{ Class, Name string }

// legend explains the colours of bars, which the text beside each bar says as well.
var legend = []Swatch{
	{"attempt good", "attempt"},
	{"attempt bad", "failed or rejected"},
	{"attempt running", "under way"},
	{"queue", "waits for a worker"},
	{"person", "for a person"},
	{"merge_queue", "merge queue"},
	{"locks", "file locks"},
	{"budget", "budget"},
	{"forge", "pull request"},
	{"intents", "other intents"},
	{"later", "later"},
}

// Legend explains the colours that some spans have.
func Legend(spans []document.Span) (list []Swatch) {
	for _, one := range legend {
		if slices.ContainsFunc(spans, func(s document.Span) bool { return Class(s) == one.Class }) {
			list = append(list, one)
		}
	}
	return list
}

// Lasted returns a duration as people read it; empty if there was none.
func Lasted(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < 100*time.Millisecond:
		return "under 0.1 s"
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}
