package forge

import "time"

// Policy is the part of a project's configuration that the rules read.
type Policy struct {
	Numbers

	// MaxReviewRetries bounds how often a change may be made again because it
	// was rejected, failed to verify or was empty.
	MaxReviewRetries int
	// MaxAgentRetries bounds the further attempts of a step after an agent's error.
	MaxAgentRetries int
	// RetryBackoff is the pause before the first such attempt. It doubles for each further one.
	RetryBackoff time.Duration
	// ClaimTimeout is how long a replica may leave its own rework unclaimed
	// before any replica gets it.
	ClaimTimeout time.Duration
	// AttemptTimeout is how long a replica that has begun may be silent before it counts as lost.
	AttemptTimeout time.Duration
	// TrustedOrigins are systems whose intents may run unapproved at low risk.
	TrustedOrigins []string
	Budget         Budget   // bounds the cost of agents
	Fallbacks      int      // counts the further agents to turn to when one is at a limit
	ProtectedPaths []string // patterns of paths whose changes wait for a person, also after an approved review
	// Approvers may approve; empty lets everyone approve who may publish it.
	Approvers  []string
	Approvals  Approvals        // says how many of them have to
	MaxDepth   int              // bounds the nesting of child intents; 0 allows none
	Reflection ReflectionPolicy // bounds the proposals of reflections
	// MinConfidence is the confidence that a claim of a reviewer or judge
	// needs, above 0 and at most 1; 0 stands for DefaultMinConfidence.
	MinConfidence     float64
	StrongerImplement []Stronger   // the steps that implement and execute are escalated by, one for each setback
	StrongerReview    []Stronger   // the same for review
	Second            SecondReview // says who else has to approve changes, and which
	BestOfTwo         BestOfTwo    // says of which tasks two changes are made, and the better one is merged

	AnalyzeBeforeApproval string // whether the doubtful is analyzed unapproved: recipes (also if empty), always, never
}

// Setting is one setting of the project's file.
type Setting struct {
	Name, Value, By string // its path there, its value with an entry of a list a line, and who says so
}

// Numbers are settings of a policy that hold for single steps, and all of them as people see them.
type Numbers struct {
	MaxChecks     int         // the checks that a reviewer may ask for in one review
	MergeParallel int         // the changes verified at once for the merge queue, each on top of those before it; 0 stands for 1
	MergeBatch    int         // the changes of the merge queue that one run verifies, at most; 0 stands for 1
	VerifyInMerge bool        // whether the verify commands run on what lands alone, and not before the review as well
	MergeWhole    bool        // whether all that an analysis plans for an intent becomes one task, and so is merged as one change
	Pull          *PullPolicy // says how changes are merged by pull requests; nil where they are pushed
	Settings      []Setting   // all settings that are not the defaults; no rule reads them
}

// SecondReview is the policy about a second reviewer.
type SecondReview struct {
	// By is the reviewer as the project names it; without an agent there is none.
	By   Reviewer
	When []Risk // the risks of the intents whose changes two reviewers have to approve
}

// BestOfTwo is the policy about tasks of which two changes are made.
type BestOfTwo struct {
	When []string // complex: of high complexity; rejected: after the first setback
	By   Stronger // makes the second one
}

// Reviewer is the agent that makes a review.
type Reviewer struct {
	// Agent is the back end.
	Agent string
	// Model is the one that it is asked for; empty if its program chooses.
	Model string
}

// Stronger is one step of an escalation. What is empty stays as it is configured.
type Stronger struct {
	// Model is the model's name, as the back end that is configured for the
	// step calls it. Another one keeps the model of its own.
	Model string
	// Effort says how much the model is to think.
	Effort string
}

// Approvals says how many people have to approve, and whether a requester may.
type Approvals struct {
	Count        int    // how many different people have to approve; 0 stands for 1.
	NotRequester bool   // whether a requester of an intent may not approve it
	Persons      int    // how many people could approve at all; 0 if that is not known.
	Commit       string // the one of the base branch whose file says so.
}

// ReflectionPolicy bounds the work that reflection adds by itself.
type ReflectionPolicy struct {
	Off            bool // turns reflection off.
	MaxGeneration  int  // bounds the reflections between an intent and the wish of a person.
	ProposalsADay  int  // bounds the proposals of the project on one day, UTC.
	ProposalsATime int  // bounds the proposals of one reflection.
}

// Budget bounds the cost of agents, in US dollars; 0 is no bound.
type Budget struct {
	IntentUSD  float64 // bounds one intent, in all its runs.
	ProjectUSD float64 // bounds all intents of the project.
	DayUSD     float64 // bounds all intents of the project on one day, UTC.
	CallUSD    float64 // reserved for one call; 0 stands for DefaultCallUSD.
}

// DefaultCallUSD is reserved for one call while a budget is in force, in US dollars.
const DefaultCallUSD = 5

// Shared reports whether intents draw on one pool.
func (b Budget) Shared() bool { return b.ProjectUSD > 0 || b.DayUSD > 0 }

// DefaultPolicy is in force until an analysis has read the project's own.
func DefaultPolicy() Policy {
	return Policy{
		MaxReviewRetries: 2, MaxAgentRetries: 2, RetryBackoff: time.Second, ClaimTimeout: 30 * time.Second, AttemptTimeout: time.Hour,
		MaxDepth: 3, AnalyzeBeforeApproval: "recipes", MinConfidence: DefaultMinConfidence,
		Reflection: ReflectionPolicy{MaxGeneration: 2, ProposalsADay: 20, ProposalsATime: 5},
	}
}
