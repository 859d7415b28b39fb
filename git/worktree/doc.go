// Package worktree is a repository with the branches and working trees of a person.
// Repository is the door; package store adds the hidden refs of the service to it.
//
// # Whom it trusts
//
// The person, and their configuration: it says how files are written. Their
// hooks do not run. Their uncommitted work is never touched.
//
// # How a branch moves
//
// Only by Merge: fast-forward, from exactly the expected commit to exactly the
// reviewed one. It is one git ref transaction:
//
//  1. the move is announced in pfl-forge/move.json;
//  2. index.lock is taken, with our mark in it;
//  3. the transaction is prepared: git has locked the branch and HEAD at the expected value;
//  4. files and index follow, with git's own two-way merge;
//  5. the transaction commits, and the announcement goes.
//
// If this process dies, git aborts the transaction. Files that were written already are
// put back by the next Merge or Repair, where they still have the content that we wrote.
// A lock file that is left is removed only when its content proves that it is ours.
package worktree
