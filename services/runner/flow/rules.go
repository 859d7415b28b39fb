package flow

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/budget"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// What the project's machine uses of the rules.
const (
	ruleNotProposed = rule.NotProposed
	smallestCall    = budget.SmallestCall
	// reflectAttempts bounds the attempts at one reflection; nothing hangs on it.
	reflectAttempts = 2
)

func refuse(format string, args ...any) (forge.Decision, error) { return rule.Refuse(format, args...) }

func ignore(format string, args ...any) (forge.Decision, error) { return rule.Ignore(format, args...) }

func firstLine(text string) string { return rule.FirstLine(text) }

func shorten(text string, most int) string { return rule.Shorten(text, most) }

func sameKnowledge(a, b forge.Knowledge) bool { return rule.SameKnowledge(a, b) }

func givesUp(r forge.FailureReason) bool { return rule.GivesUp(r) }

func slice(b forge.Budget) float64 { return budget.Slice(b) }

func room(left, wish float64, more bool) (float64, bool) { return budget.Room(left, wish, more) }
