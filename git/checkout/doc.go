// Package checkout makes the private working trees in which agents work, and collects
// their work. Pool hands out a Checkout: a working tree with a .git of its own that
// borrows the store's objects, on branch forge/<task>.
//
//	Prepare -> the agent works (Checkpoint) -> Collect -> Park or Release
//	                                                       Park -> Reopen, Recover
//
// # Whom it trusts
//
// Nothing that an agent can write. The agent can do what it likes in its checkout, and
// it is never asked: no git process of ours uses that .git, its configuration, hooks,
// index, refs, grafts or attributes.
//
//   - The position of the branch is read as plain files by code of our own: below the checkout only, following no link,
//     regular files only, with a size limit, and believed only if it has the shape of an object name.
//   - Commits come in through the quarantine of package objects.
//   - The working tree is seen through a git directory and an index of ours. That finds out what was not committed, commits it
//     (CommitAll) or saves it (Collect), and brings the tree to another commit (Prepare). Attributes in the tree have no
//     effect, because no filter, diff or merge driver is configured there.
//   - Directories that an agent mounted are unmounted before the service reads, writes or removes anything.
package checkout
