// Package mergequeue decides in which order the approved changes of a project are
// merged, one at a time, and which task holds the lock on which files.
//
// Without locks the oldest request is merged first. A task that lost a conflict
// asks for the lock on its files. While it holds the lock, no other task of the
// project merges a change to them; so of many tasks that change one file each is
// implemented again at most once, and in all at most twice.
//
// Locks are given in the order in which they were asked for, and only when the
// files overlap neither with a lock in force nor with the change that is being
// merged, so that tasks never wait for each other in a circle. A change that is
// implemented again may turn out to touch files that another task has locked:
// the older lock wins. If such a change, or one outside of the locked files,
// makes the holder lose a conflict once more, it is given the lock on all files;
// after that only a change from outside pfl-forge can conflict with it.
//
// The requests of one task:
//
//	        Lock                   StartNext
//	none ----------> waiting for a lock -----> locked
//	 |                                           |
//	 |      Merge             StartNext          |
//	 +----------------> queued -----> merging <--+ (Merge)
//	                       ^             |
//	                       |             +-- failed: the same merge again after a pause
//	                       |             +-- merged, dirty: no request, no lock
//	                       +-------------+-- conflict, changed, verify failed: the lock stays
//
// A merge whose push the origin refuses goes back to queued, at its place:
// refusal.go says when that ends, and when the refusal is the change's own. So
// does one that the base branch has overtaken: see busy.go.
//
// Whatever the state, Withdraw and Forget lead back to none, and a result that
// comes late counts if it says that the change was merged.
package mergequeue
