package forges

import (
	"context"

	"github.com/pfl-forge/pfl-forge/git"
)

// # What a forge's own queue is
//
//	GitHub's merge queue     tries a change on those before it, on the tip; a push takes it out
//	GitLab's merge train     does the same, by pipelines of its own
//	auto-merge               waits for the rules of the base and merges then, on whatever tip there is. GitHub's goes on
//	                         after a push, GitLab's ends with one
//	Gitea's scheduled merge  waits for statuses; it has no head, and goes on after a push
//
// So a head that was named once is not the head that is merged, unless the forge says so: whoever
// puts a change in looks at it again, and takes it out. The merge itself is found by its commit.

// ByQueue is the method of a project whose changes the forge merges by itself: by a merge
// queue or a merge train, or else as soon as its rules are met. How, the forge's settings say.
const ByQueue Method = "queue"

// Queues are the operations of a forge's own merge queue.
type Queues interface {
	// Queue returns where a pull request stands in the queue of its base. An
	// ErrMethod says that there is none, and which setting of the forge turns one on.
	Queue(ctx context.Context, repository string, number int64, base git.Branch) (Queue, error)
	// Enqueue has the forge merge a pull request by itself, if its head is that commit. It may be
	// merged by then. One that is queued is left as it is. A RefusedError is as that of Merge.
	Enqueue(ctx context.Context, repository string, number int64, base git.Branch, head git.OID) error
	// Dequeue takes a pull request out again. For one that is not queued it changes nothing.
	Dequeue(ctx context.Context, repository string, number int64) error
}

// Queue is where a pull request stands in the merge queue of its forge.
type Queue struct {
	// In says that the forge merges it by itself, as soon as it may.
	In bool
	// Position counts from 1, which is next; 0 if the forge does not tell.
	Position int
	// Tests says that the queue tries what it merges on the tip of the base:
	// being behind that is nothing in its way.
	Tests bool
	// Out is the last time that it was taken out, if it was not put in since; nil if it was not.
	Out *Removal
}

// Removal is that a pull request was taken out of a queue.
type Removal struct {
	// ID is the same for the same removal.
	ID string
	// Cause is why, as far as that is known.
	Cause Cause
	// Reason has the forge's words, one line for people.
	Reason string
	// By is the login of who took it out; empty if the forge did, or does not tell.
	By string
	// Commit is the one on which checks failed; empty if the forge does not tell.
	Commit git.OID
}

// Cause is why a pull request was taken out of a queue.
type Cause string

// The causes.
const (
	CauseChecks   Cause = "checks"
	CauseConflict Cause = "conflict"
	CauseOther    Cause = "other"
)
