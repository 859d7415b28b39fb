// Package git runs the git program, and names what it works on. No package but this one
// and those below it starts git.
//
// # Where to look
//
//   - git itself: a Command with its environment, a Process that is asked through pipes, errors, object names, branches,
//     paths, and the lock that processes of the service share.
//   - objects: the object database. Reading commits, trees and files; rebase, squash, overlaps and patch ids; the checks of
//     objects that an agent made. It knows no refs.
//   - worktree: the person's repository. Its branches and working trees, and how a branch moves under a person's hands.
//   - store: a service's repository, the person's own or a clone of an origin. Commits that are kept under hidden refs, the
//     heads of tasks, pending merges, fetch and push.
//   - checkout: private working trees in which agents work, and how their work is collected.
//
// A package uses those above it in this list only.
//
// # What failed
//
// Why an origin did not do what a command asked is a Cause (CauseOf): its server is not
// there, refuses the credentials, or declined the push. Callers decide by that, and by
// the errors of this package, never by the text of an error, which is for people.
//
// # Whom it trusts
//
// The person's repository, or the origin, is trusted; so is the service's own clone of
// it. Files that an agent can write are not: package checkout reads them, and says how.
//
// The environment of a Command is built from nothing, and configuration on its command
// line turns off hooks, helpers, prompts, garbage collection and every transport. The
// person's own configuration applies only to Personal commands, which write the files
// of their working tree.
//
// Git processes inherit the lock that they run under (Command.Hold). After a kill -9 of
// the service, its successor waits for an orphaned git to end instead of racing it.
package git
