package render

// rules says what each rule that adjusts a flow does, under the name that the history
// has for it.
var rules = map[string]string{
	"clarify":          "the analysis asked questions; the same session continues with the answers",
	"blocked":          "the agent could not go on; a person was asked, and the same session continues with the answer",
	"nothing-to-do":    "a review of the base branch confirmed that nothing had to be changed; done without a commit",
	"architect":        "the analysis was not sufficient; an architect took a closer look",
	"split":            "split into child intents",
	"pause":            "a person paused it; its agents stopped, their work is kept",
	"resume":           "a person resumed it",
	"proposed":         "the reflection proposed an intent",
	"not-proposed":     "the reflection proposed something already known, or more than its limit",
	"overlap":          "two tasks in progress conflict; both agents are informed",
	"await-approval":   "its risk or origin requires a person to approve the plan",
	"await-dependency": "the implementation waits until other intents are done",
	"block-dependency": "an intent that this one depends on failed",
	"freed":            "what this one depends on failed and is done after all; it goes on by itself",
	"dependency-cycle": "intents wait for each other in a circle",
	"empty-attempt":    "nothing was committed; implemented once more, with that as feedback",
	"rework":           "the review rejected the change; the same session continues with its feedback",
	"stronger":         "what was made was not good enough; the next attempt has a stronger model, or more effort",
	"verify-failed":    "a verify command failed; its output is the feedback for the next attempt",
	"verify-again":     "the next attempt found nothing to mend; verified once more, since the command may fail now and then",
	"reimplement":      "a conflict; implemented again from a fresh checkout, first in the queue",
	"escalate":         "a conflict although it was first in the queue; a person has to look",
	"review-again":     "the rebased change differs from the one that was reviewed",
	"merged-late":      "a merge that was given up turned out to have happened",
	"protected-paths":  "the change touches protected paths; a person must approve it too",
	"approved":         "a person approved",
	"wait-for-files":   "uncommitted changes of a person are in the way",
	"retry-agent":      "the attempt failed; tried again after a pause",
	"park":             "a limit with a known end; waited, without using a retry",
	"new-session":      "the session was lost; a new one started with a summary",
	"fallback":         "the agent reached its limit; another one took over in a new session",
	"more-money":       "the call used up the budget reserved for it; its session continues with more",
	"wait-for-budget":  "the budget is used up; the work is kept",
	"interrupted":      "the service stopped; the same session continues in the next one",
	"reclaim":          "the replica that has the checkout did not take the work; any other may take it",
	"fail-dependents":  "a task that this one depends on failed",
	"task-failed":      "no attempts are left, or another one would not help",
	"next-iteration":   "a criterion of the goal is not met yet: another iteration",
	"max-iterations":   "the goal has used all its iterations",
	"plain-summary":    "an iteration could not be summarized; its own report is used instead",
}

// Rule says in a line what a rule that adjusts a flow does; empty if it is not known.
func Rule(name string) string { return rules[name] }
