package flow

import "github.com/pfl-forge/pfl-forge/services/runner/flow/rule"

// maxTold bounds steps, adjustments and observations that a run tells its project of.
const maxTold = 100

// The intent's side uses these by their old names until it has moved to package rule.
func last[T any](list []T, most int) []T { return rule.Last(list, most) }

var sameKnowledge = rule.SameKnowledge
