package rule

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// Then names the consequence of an attempt that failed.
type Then int

// What can follow. The zero value is for reasons that this version does not know.
const (
	// TryAgain: after a pause that doubles, as often as the policy allows.
	TryAgain Then = iota
	// TryOnce: as TryAgain, but a second time in a row is for a person: the limit is one that the
	// project sets, and each attempt up to it is paid for.
	TryOnce
	// TryLater: as TryAgain, with the longer pause that a busy model needs, or an
	// origin that is away.
	TryLater
	// WaitForIt: the agent is at a limit; another one takes over, or its reset
	// is waited for.
	WaitForIt
	// AwaitWorker: at once, with more patience, as often as it takes, and the
	// failure counts for nothing.
	AwaitWorker
	// CarryOn: at once, and the failure counts for nothing.
	CarryOn
	// CarryOnTwice: as CarryOn, but the third time in a row the task is paused,
	// since each of these attempts was paid for.
	CarryOnTwice
	// NewSession: as TryAgain, in another session.
	NewSession
	// RaiseBudget: with more budget if there is some, or else a person has to
	// raise it.
	RaiseBudget
	// AskPerson: trying again cannot help before a person has acted.
	AskPerson
)

// Failure is the row of one reason in the table of failures.
type Failure struct {
	Then Then
	// Keep says that the next attempt goes on in the same session and tree.
	Keep bool
	// Explain is set if the prompt of the next attempt says why this one failed.
	Explain bool
	// Elsewhere says that the reason may lie in the replica: the next attempt
	// is for any of them, and not for the one that has the checkout.
	Elsewhere bool
}

// Failures has a rule for every reason.
var Failures = map[forge.FailureReason]Failure{
	forge.FailTimeout:       {Then: TryAgain, Keep: true, Explain: true},
	forge.FailIdle:          {Then: TryAgain, Keep: true, Explain: true},
	forge.FailOutputLimit:   {Then: TryAgain, Keep: true, Explain: true},
	forge.FailDiskLimit:     {Then: TryAgain, Keep: true, Explain: true},
	forge.FailCrashed:       {Then: TryAgain, Keep: true, Explain: true},
	forge.FailMaxTurns:      {Then: TryOnce, Keep: true, Explain: true},
	forge.FailInvalidOutput: {Then: TryAgain, Keep: true, Explain: true},
	forge.FailKilled:        {Then: TryAgain, Keep: true},
	forge.FailInterrupted:   {Then: CarryOn, Keep: true},
	forge.FailRepository:    {Then: TryLater, Keep: true, Elsewhere: true},
	forge.FailLost:          {Then: TryLater, Keep: true},
	forge.FailReplica:       {Then: AwaitWorker, Keep: true, Elsewhere: true},
	forge.FailUnwell:        {Then: CarryOnTwice, Keep: true, Elsewhere: true},
	forge.FailKilledReplica: {Then: CarryOnTwice, Keep: true, Elsewhere: true}, // which workers have counted
	forge.FailUnsafe:        {Then: TryAgain, Explain: true},
	forge.FailOverloaded:    {Then: TryLater, Keep: true},
	forge.FailRateLimited:   {Then: WaitForIt, Keep: true},
	forge.FailQuota:         {Then: WaitForIt, Keep: true},
	forge.FailLostSession:   {Then: NewSession, Keep: true},
	forge.FailPromptTooLong: {Then: NewSession, Keep: true},
	forge.FailBudget:        {Then: RaiseBudget, Keep: true},
	forge.FailUnreserved:    {Then: RaiseBudget, Keep: true},
	forge.FailHeld:          {Then: CarryOn, Keep: true},
	forge.FailOrigin:        {Then: TryLater, Keep: true},
	forge.FailPush:          {Then: AskPerson, Keep: true},
	forge.FailBase:          {Then: CarryOn, Keep: true},
	forge.FailRefused:       {Then: AskPerson},
	forge.FailAuth:          {Then: AskPerson, Keep: true},
	forge.FailMissingCLI:    {Then: AskPerson, Elsewhere: true},
	forge.FailCLITooOld:     {Then: AskPerson, Elsewhere: true},
	forge.FailSandbox:       {Then: AskPerson, Elsewhere: true},
	forge.FailConfig:        {Then: AskPerson},
}

// For returns the replica that the next attempt is for, of the one that made the last; empty: any.
func (f Failure) For(by rules.Version, last forge.ReplicaID) forge.ReplicaID {
	if f.Elsewhere && by.Has(rules.OtherReplica) {
		return ""
	}
	return last
}

// laterFactor is how much longer the pause of TryLater is.
const laterFactor = 30

// firstPatience and longestPatience bound Patience. A person need not hear of a
// shorter wait, and each answer is a record of the journal.
const (
	firstPatience   = 15 * time.Second
	longestPatience = 15 * time.Minute
)

// Patience returns for how long replicas leave a step to one another before they answer that
// none can do it, after so many such answers in a row. Meanwhile the first that can takes it.
func Patience(waits int) time.Duration {
	return min(firstPatience<<min(max(waits, 0), 10), longestPatience)
}

// Pause returns how long to wait before the next attempt, after as many failures in a
// row as errors says, this one not counted.
func (t Then) Pause(backoff time.Duration, errors int) time.Duration {
	pause := backoff << errors
	if t == TryLater {
		pause *= laterFactor
	}
	return pause
}

// GivesUp reports whether trying again cannot help before a person has acted.
func GivesUp(r forge.FailureReason) bool { return Failures[r].Then == AskPerson }
