// Package store is a service's repository. OpenLocal opens the person's own: origin and
// object store at once. OpenOrigin opens a bare clone that belongs to the service, and
// pushes whatever has to last to the origin.
//
// # Whom it trusts
//
// The person's repository, or the origin, and the service's own clone of it. Refs,
// transports and the person's working trees are used under the repository's
// configuration, without hooks.
//
// # Which commits are kept
//
// Every head that was collected is kept as refs/forge/<intent>/<task>/<attempt>/<12
// digits of its name>, work that was not committed as .../leftover-<12 digits>, a
// commit on another branch or a detached HEAD as .../stray-<12 digits>. The ref is on
// the disk, and at the origin if there is one, before the name is returned. It is new
// and has one possible value, so it is written as a file where git keeps refs as files.
// Sweep lets go of those of intents.
//
// The newest head of a task under way is refs/forge/_heads/<task>, which is pushed
// together with that: Overlaps compares changes that are not merged with each other. A
// try to merge is refs/forge/<intent>/<task>/merge/<number>/<parent>, a PendingMerge,
// until Forget.
//
// refs/forge/_probe/<random> are there for a moment: whether the origin takes work is
// found out by a push.
//
// The proofs of a commit that was merged are a blob, refs/forge/_proofs/<commit>. They
// are kept together with the PendingMerge, so before the branch moves, and never
// deleted by this package. A clone of an origin does not fetch them.
//
// # How the base branch moves
//
// Only by Merge: in a person's repository as package worktree says, towards an origin
// by a push with a lease.
package store
