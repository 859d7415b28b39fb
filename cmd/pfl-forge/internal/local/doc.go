// Package local runs pfl-forge in one person's repository: the embedded server, the
// runner, the workers and the .forge folder, all in one process.
//
// One process at a time owns the repository's server. [Run] owns it for as long as it
// works, and other commands connect to it. Without a run, a command owns it for a
// moment: [Open] starts a runner in the command's own process, [OpenReader] only
// reads.
//
// Files go in and out through filesSync: drafts and edits become events, decisions
// become files. [Follow], [Join] and [Observe] report to an [Observer] what goes on,
// from the journals and the workers' progress. views.go folds the journals; follow.go
// decides when nothing can go on without a person.
package local
