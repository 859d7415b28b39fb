// Package objects is a repository's object database: commits, trees and files by their
// names. It reads them, makes new ones, and knows no refs, so nothing that it makes is
// reachable until package store keeps it.
//
// Database is the door. Whole answers come from its methods: ReadFile, Diff, Changes,
// Log; Rebase, Squash and CommitFile make commits without a working tree; Overlaps
// compares tasks under way; Import brings in the objects of an agent.
//
// # Whom it trusts
//
// The repository's objects are trusted, its refs, configuration, hooks, grafts and
// attributes are not used. Commands run in a "hub": a git directory under
// <repository>/pfl-forge that has no refs and reads and writes the repository's object
// directory.
//
// Objects of an agent are not trusted. Import takes them in through a quarantine: they
// are copied into a directory of ours; a git that knows only that directory and the
// database packs what the branch needs; the pack goes into the database under the
// checks that a server makes of a push (unpack-objects or index-pack, --strict). Then
// CheckCommits judges the paths, links and sizes of each commit. A history that was
// rewritten or merged is a fault of the work, a *git.WorkError.
//
// # Speed
//
// Reading goes through git cat-file --batch-command processes that live for some seconds after
// a call. Trees are merged here when no file was changed on both sides, and by git
// merge-tree otherwise. New objects are written as loose files and made durable
// together.
package objects
