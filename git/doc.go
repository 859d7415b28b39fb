// Package git runs git for the services: it is the only place in the project that does.
//
// # Whom it trusts
//
// The person's repository, or the origin, is trusted; so is the service's own clone of it. What an agent can write is not.
// An agent therefore works in a private checkout (Pool, Checkout): a working tree with a .git of its own that borrows the
// store's objects, on branch forge/<task>. It can do there what it likes, and it is never asked: no git process of ours
// uses that .git, its configuration, hooks, index, refs, grafts or attributes.
//
//   - Where the branch is, is read as plain files by code of our own: below the checkout only, following no link,
//     regular files only, with a size limit, and believed only if it has the shape of an object name.
//   - Commits come in through a quarantine: the agent's object files are copied, by name and kind, into a directory of
//     ours; a git that knows only that directory and the store packs what the branch needs; the pack goes into the store
//     under the checks that a server makes of a push (unpack-objects or index-pack, --strict). Then each commit's paths,
//     links and sizes are judged. A history that was rewritten or merged is a fault of the work.
//   - The working tree is seen through a git directory and an index of ours: that finds out what was not
//     committed, commits it (CommitAll) or saves it (Collect), and brings the tree to another commit (Prepare).
//     Attributes in the tree have no effect, because no filter, diff or merge driver is configured there.
//
// So that commands on objects and trees see no configuration but ours, they all run in a "hub": a git directory under
// <repository>/pfl-forge that has no refs and reads and writes the repository's object directory. Only what concerns refs,
// transports and the person's own working tree runs in the repository itself, under its configuration, without hooks.
//
// # What is kept
//
// Every head that was collected is kept as refs/forge/<intent>/<task>/<attempt>/<12 digits of its name>, work that was
// not committed as .../leftover-<12 digits>, a commit on another branch or a detached HEAD as .../stray-<12 digits>. The ref
// is on the disk, and at the origin if there is one, before the name is returned. It is new and has one possible value, so it is
// written as a file where git keeps refs as files. Sweep lets go of those of intents.
//
// What a task under way comes to now is refs/forge/_heads/<task>, which is pushed together with that: Forecast compares
// changes that are not merged with each other.
//
// # How the base branch moves
//
// Only by Merge: fast-forward, from exactly the expected commit to exactly the reviewed one. Towards an origin it is a
// push with a lease. In a person's repository it is one git ref transaction: while it is prepared, git has locked
// the branch and HEAD at the expected value and we have locked the index; then their files and index follow, with
// git's own two-way merge, and then the transaction commits. If this process dies, git aborts the transaction;
// what was already written to files is recorded in pfl-forge/move.json and put back by the next Merge or OpenLocal, where
// it is what we wrote. A lock file that is left is removed only when its content proves that it is ours.
//
// Git processes inherit the lock that they run under. After a kill -9 of the service, its successor waits for
// an orphaned git to end instead of racing it.
package git
