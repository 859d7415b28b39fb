// Package rules numbers the rules of package flow. Each record of a journal has the
// number of those that it was decided by, and is folded by them for ever (docs/adr/0086).
//
// The history of versions:
//
//	1  records without a number
//	2  a task that looks whether a red base branch is mended, and has told the answer, is not taken for one that went
//	   silent; checks that a reviewer asked for do not count as a verify of the change; a trial of the merge queue whose
//	   verify failed is made once more
//	3  an intent that was blocked by one that had not been submitted yet goes on when that one is done; the tasks of another plan go on
//	   with the numbers of those before; what a forge refuses
//	   until a person mends it fails no change, and of a pull request that waits for a day one is told
//	4  the retry of a task whose change could not be verified or reviewed goes on with that change; a person may ask for
//	   changes of what waits for approval
//	5  a recipe whose change was to blame for a failed verify, and that makes the same one again, has failed; a change that failed once is run
//	   until it has passed often enough; a project has schedules; a check of a forge that does not end is told by its name,
//	   and that there is none; one intent at a time looks at what a forge merged unverified; a person may have a commit that another one pushed
//	   to the branch of a pull request become the change; a batch of the merge queue begins with all that waits, and
//	   one that failed is searched; who approved a plan or a change does not say what is done while that counts; what failed
//	   for a reason of a replica is for any of them next; a step that no replica can do stays with the workers, which say so ever less often;
//	   a recipe whose check fails where others were merged meanwhile is made again with precedence; that the text of a request was edited
//	   where it came from is remembered, and so are comments on it; who lets a request be analyzed approves the values of its recipe and
//	   the options of its goal, too; a task that waits for an account whose quota is reached goes on when that is over
//
// Whoever changes what an event leads to, in a state that may be in a journal, counts Newest
// up, adds a line here and a Change below, and has the rules ask for it where they differ:
//
//	if s.DecidedBy.Has(rules.AnsweredLook) {
//
// A field that no record had yet needs none of that: where it is missing, the
// rules do what they did before it was there. TestJournals of package sim folds
// what every version has decided, and fails where this was forgotten.
package rules

import (
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
)

// Version is the number of the rules that a record was decided by.
type Version int

const (
	// First is the version of records that carry none.
	First Version = 1
	// Newest is the one that this program decides by, as soon as every runner
	// knows it. A record of a newer one is not for this program.
	Newest Version = 5
)

// Change is a place in which the rules of two versions differ. It can be deleted,
// with the branch of the versions before, when no journal that is ever read again
// has a record of those; `pfl-forge doctor --deep` says which there are.
type Change struct {
	// Name is for people.
	Name string
	// Since is the first version with it.
	Since Version
	// Why says what it mends.
	Why string
}

// The changes.
var (
	// AnsweredLook is asked for in package account.
	AnsweredLook = Change{
		Name: "AnsweredLook", Since: 2,
		Why: "an intent that is paused while it looks, and answers with another task, was never asked to look again",
	}
	// AskedChecks is asked for where an intent tells its project how a change
	// did on a red base branch.
	AskedChecks = Change{
		Name: "AskedChecks", Since: 2,
		Why: "checks that a reviewer asked for were taken for a verify that passes, and a red base branch for fixed",
	}
	// DoubtedCar is asked for in package mergequeue.
	DoubtedCar = Change{
		Name: "DoubtedCar", Since: 2,
		Why: "a check that failed once had all those behind the change put together anew and verified again",
	}
	// AbsentDependency is asked for where an intent is told how one ended that it depends on.
	AbsentDependency = Change{
		Name: "AbsentDependency", Since: 3,
		Why: "an intent that was decided on before one that it depends on was submitted stayed blocked when that was done",
	}
	// UsedNumbers is asked for in package task.
	UsedNumbers = Change{
		Name: "UsedNumbers", Since: 3,
		Why: "a late result of a plan that was given up could be taken for that of the first attempt of another plan",
	}
	// HeldPulls is asked for in package mergequeue.
	HeldPulls = Change{
		Name: "HeldPulls", Since: 3,
		Why: "a token that a forge did not take any more failed every change that was opened or merged meanwhile",
	}
	// OverduePulls is asked for in package mergequeue.
	OverduePulls = Change{
		Name: "OverduePulls", Since: 3,
		Why: "a pull request whose checks never came, or that nobody merged, waited unnoticed and had others wait for it",
	}
	// StandingChange is asked for where a step is given up.
	StandingChange = Change{
		Name: "StandingChange", Since: 4,
		Why: "the retry of a task whose review could not be made had its change made again, found nothing to commit, and failed for that",
	}
	// RequestedChanges is asked for where a person asks for changes: the
	// message came with this version, and no runner of one before reads it.
	RequestedChanges = Change{
		Name: "RequestedChanges", Since: 4,
		Why: "who was to approve a plan or a change could not ask for another one",
	}
	// FailedAgain is asked for in package task.
	FailedAgain = Change{
		Name: "FailedAgain", Since: 5,
		Why: "a recipe whose change failed made the same change twice more, and each time the fault was searched for again",
	}
	// SettledCheck is asked for where a change is to be verified: what a worker
	// reports then is read by package verdict, which has no versions.
	SettledCheck = Change{
		Name: "SettledCheck", Since: 5,
		Why: "a check that failed once on a change, and not on the base branch, cost a good change its attempts",
	}
	// FailedTrials is asked for in package mergequeue.
	FailedTrials = Change{
		Name: "FailedTrials", Since: 5,
		Why: "a change that failed twice in its trials failed twice more on the same tree in its merge, before it was found out whose fault that is",
	}
	// Schedules is asked for where schedules are set: the messages came with
	// this version, and no runner of one before reads them.
	Schedules = Change{Name: "Schedules", Since: 5, Why: "what is to be done every night had to be asked for by something else"}
	// LateChecks is asked for in package mergequeue.
	LateChecks = Change{Name: "LateChecks", Since: 5, Why: "a check that never came was told after a day, and not which one"}
	// NoChecks is asked for in package mergequeue.
	NoChecks = Change{
		Name: "NoChecks", Since: 5,
		Why: "a pull request that is merged when its checks have passed waited for a day at a forge that reports none, and no word said so",
	}
	// OneRepair is asked for where a forge merged what was not verified on its parent.
	OneRepair = Change{
		Name: "OneRepair", Since: 5,
		Why: "where a forge merges on moving tips, each merge had an intent to verify the base branch, and the merges of those again",
	}
	// SettledMerge is SettledCheck where a change is to be merged.
	SettledMerge = Change{Name: "SettledMerge", Since: 5, Why: SettledCheck.Why}
	// AdoptedPulls is asked for where a task waits because another one changed its branch.
	AdoptedPulls = Change{
		Name: "AdoptedPulls", Since: 5,
		Why: "who pushed to the branch of a pull request could have the change made again without that, and could not continue with it",
	}
	// SecondPush is asked for in package mergequeue.
	SecondPush = Change{
		Name: "SecondPush", Since: 5,
		Why: "who was told that another one had changed the branch of a pull request was not told when it was changed once more",
	}
	// SearchedBatch is asked for in package mergequeue.
	SearchedBatch = Change{
		Name: "SearchedBatch", Since: 5,
		Why: "of a batch that failed both halves were run, and those behind the change that was at fault went on in small groups",
	}
	// WholeBatch is asked for in package mergequeue.
	WholeBatch = Change{
		Name: "WholeBatch", Since: 5,
		Why: "where two batches had ended at once, the next one began with the first change for which the train had a place, and not with all that waited",
	}
	// BoundApprovers is asked for where a person says what is done.
	BoundApprovers = Change{
		Name: "BoundApprovers", Since: 5,
		Why: "who had approved the plan could answer questions and give words to a retry, and the merge was refused by its proofs",
	}
	// OtherReplica is asked for where an attempt failed.
	OtherReplica = Change{
		Name: "OtherReplica", Since: 5,
		Why: "an attempt that failed for a reason of its replica was made again on that one, which has its checkout",
	}
	// PatientSteps is asked for where an intent issues a command.
	PatientSteps = Change{
		Name: "PatientSteps", Since: 5,
		Why: "workers reported a reason to runners that could not read it, and a wait for a replica was two records a minute",
	}
	// LaterText is asked for where a publisher repeats its event.
	LaterText = Change{
		Name: "LaterText", Since: 5,
		Why: "an issue that was edited after its text was taken was not told to those who approve and watch elsewhere than at the forge",
	}
	// HeardComments is asked for where a system tells of comments.
	HeardComments = Change{
		Name: "HeardComments", Since: 5,
		Why: "that somebody commented on what is under way was counted in our own comment at the forge, and told nobody else",
	}
	// ApprovedSettings is asked for where a request is named that a person lets be analyzed.
	ApprovedSettings = Change{
		Name: "ApprovedSettings", Since: 5,
		Why: "who let the request for a recipe be analyzed was not shown the values of its parameters, and approved any; nor the options of a goal",
	}
	// ApprovedContext is asked for where an intent has a plan.
	ApprovedContext = Change{
		Name: "ApprovedContext", Since: 5,
		Why: "who approved a plan was not shown what the analysis told the agent besides it, and the hash was not of that",
	}
	// OutrunCheck is asked for where a review rejects.
	OutrunCheck = Change{
		Name: "OutrunCheck", Since: 5,
		Why: "a recipe whose check failed on what had been merged meanwhile was made again beside the same others, until it had no attempt left",
	}
	// EndedLook is asked for after each decision about an intent.
	EndedLook = Change{
		Name: "EndedLook", Since: 5,
		Why: "a task that failed before it looked whether a red base branch passes was waited for, and what is to be merged stood still",
	}
	// TimedHolds is asked for where an intent hears of accounts.
	TimedHolds = Change{
		Name: "TimedHolds", Since: 5,
		Why: "a task whose credentials were refused, while another one of its intent reached the quota of the same account, stood still after that",
	}
	// PausedLook is asked for where an intent says what it waits for.
	PausedLook = Change{
		Name: "PausedLook", Since: 3,
		Why: "an intent that a person had paused said that it waits for the base branch, which no other one looked at, and stood still",
	}
)

// Changes returns all of them, the oldest first.
func Changes() []Change {
	return []Change{
		AnsweredLook, AskedChecks, DoubtedCar, AbsentDependency, UsedNumbers, HeldPulls, OverduePulls, PausedLook, StandingChange, RequestedChanges,
		FailedAgain, SettledCheck, SettledMerge, FailedTrials, Schedules, LateChecks, NoChecks, OneRepair, AdoptedPulls, SecondPush,
		SearchedBatch, WholeBatch, BoundApprovers, OtherReplica, PatientSteps, OutrunCheck,
		LaterText, HeardComments, ApprovedSettings, ApprovedContext, EndedLook, TimedHolds,
	}
}

// Has reports whether the rules of a version have a change.
func (v Version) Has(c Change) bool { return v >= c.Since }

// Of returns the version that a record was decided by.
func Of(rec *forge.Record) Version { return max(Version(rec.Rules), First) }

// Stamp writes into a record by which version it was decided. The first is not
// written: programs that know no versions refuse records with one, and they are
// to read those of the rules that they know.
func (v Version) Stamp(rec *forge.Record) {
	if rec.Rules = 0; v > First {
		rec.Rules = int(v)
	}
}

// Active returns the version for new decisions, of those that all runners have said
// they know. A runner that says none is of the time before there were versions.
func Active(known []Version) Version {
	if len(known) == 0 {
		return First
	}
	return min(max(slices.Min(known), First), Newest)
}
