// Package phrase has the words in which pages of the console say states,
// numbers and times. It is pure.
//
// Templates call it, so that a state has one name on all pages. Names and ids that it puts
// into sentences are texts of others: html/template escapes them where they are written.
package phrase

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
)

// wording has the names of states on pages, where they differ from those of the API. States of
// intents, of tasks and of waits share it: no name means two things.
var wording = map[string]string{
	"approval": "needs approval", "clarification": "has questions", "failed": "failed", "dirty": "files are in the way", "base": "base branch is red",
	"budget": "over budget", "pull_request": "pull request changed", "paused": "paused", "med": "medium", "executing": "in progress", "error": "error",
}

// State returns the name of a status, or of the act that an intent waits for. It takes any string
// type, as templates have them. A state without a name of its own here is shown as the API has it,
// with spaces: one that a newer runner tells is readable as well.
func State(value any) string {
	s := fmt.Sprint(value)
	if w := wording[s]; w != "" {
		return w
	}
	return strings.ReplaceAll(s, "_", " ")
}

// Ended returns the outcome of an attempt of a step in words: a review that is ok has approved.
func Ended(step forge.Step, outcome string) string {
	if step == forge.StepReview && outcome == "ok" {
		return string(forge.VerdictApproved)
	}
	return State(outcome)
}

// Quoted returns a state in words, in quotes; "nothing" without one.
func Quoted(s string) string {
	if s == "" {
		return "nothing"
	}
	return `"` + State(s) + `"`
}

// Mark returns a short hash of a text, by which a form names it: a browser sends other line ends
// than it got. It is no secret and no proof: the server compares it with the text that it has.
func Mark(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Sentence returns words as a sentence: with a capital letter, and a full stop unless they have an
// end. The words are this program's own, which begin with an ASCII letter.
func Sentence(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if strings.ContainsRune(".?!", rune(s[len(s)-1])) {
		return s
	}
	return s + "."
}

// Count returns a number with its noun, whose plural ends in s.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Age returns how long ago something was, in the one unit that a reader needs. Less than a minute,
// and a time that another machine's clock has in the future, is "just now".
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

// Side returns the words for which of two changes that are compared has a file or line.
func Side(since string) string {
	if said, known := map[string]string{"added": "in this one alone", "dropped": "in the former one alone"}[since]; known {
		return said
	}
	return since
}
