package render

// rules says what each rule that adjusts a flow does, under the name that the history
// has for it.
var rules = map[string]string{
	"clarify":          "the analysis asked; the same session goes on with the answers",
	"architect":        "the analysis was not sufficient; an architect had a deeper look",
	"split":            "taken apart into intents of their own",
	"pause":            "a person paused it; its agents stopped, their work is kept",
	"resume":           "a person let it go on",
	"proposed":         "the reflection proposed an intent",
	"not-proposed":     "the reflection proposed what is known already, or more than it may",
	"overlap":          "two tasks under way do not merge; both are told",
	"await-approval":   "its risk or its origin takes a person's approval of the plan",
	"await-dependency": "the implementation waits until other intents are done",
	"block-dependency": "an intent that this one depends on did not get done",
	"dependency-cycle": "intents wait for each other in a circle",
	"empty-attempt":    "nothing was committed; implemented once more, saying so",
	"rework":           "the review rejected; the same session goes on with its feedback",
	"verify-failed":    "a verify command failed; its output is the feedback for the next attempt",
	"reimplement":      "a conflict; made again from a fresh checkout, with a file lock over siblings",
	"escalate":         "a conflict in spite of file lock; a person has to look",
	"review-again":     "the rebased change is another one than was reviewed",
	"merged-late":      "a merge that was given up turned out to have been made",
	"protected-paths":  "the change touches protected paths; a person approves it as well",
	"approved":         "a person approved",
	"wait-for-files":   "uncommitted changes of a person are in the way",
	"retry-agent":      "the attempt failed; tried again after a pause",
	"park":             "a limit with a known end; waited for, spending no retry",
	"new-session":      "the conversation was lost; a new one began with a recap",
	"fallback":         "the agent is at its limit; another one took over in a new session",
	"more-money":       "the call used up what was set aside for it; its session goes on with more",
	"wait-for-budget":  "the budget is used up; the work is kept",
	"interrupted":      "the service ended; the same session goes on in the next one",
	"reclaim":          "the replica that has the checkout did not take the work; any other may",
	"fail-dependents":  "a task that this one depends on failed",
	"task-failed":      "the attempts are used up, or there is no point in another one",
	"next-iteration":   "a criterion of the goal is not met yet: another iteration",
	"max-iterations":   "the goal has had as many iterations as it may have",
	"plain-summary":    "an iteration could not be summed up, so its own report stands in",
}

// Rule says in a line what a rule that adjusts a flow does; empty if it is not known.
func Rule(name string) string { return rules[name] }
