// Package projection writes the files that show the journals, and loses no edit of a
// person while it does so.
//
// # Three kinds of versions
//
// The content of a file in place is one of three, by its digest:
//
//   - ours: it was written here. The index knows the last versions of every file.
//   - released: a person wrote it, and its events were decided ([Files.Release]).
//   - a person's: everything else.
//
// Only the first two are replaced. A person's version stays where edits of the file
// are read; where they are not, it is kept below .forge/kept first, which is a
// problem that the person is told of.
//
// # What holds after a crash at any point
//
// A version is recorded in the index, on the disk, before it can appear; it is
// written beside its place, flushed, and swapped in. The file that the swap brought
// out is looked at again: if it is not the expected one, a person was quicker, and it
// goes back. So whatever is found in the staging folder at the next start is told
// apart by the index: ours is removed, a person's is given back. TestKilledAnywhere
// and TestSavedAnywhere of package forgedir interrupt every step.
//
// The last version of a file stays in cache/replaced for some seconds, for editors
// that still write to it in place. Two gaps are left: a writer that holds a file open
// for longer, and, where the file system cannot swap, a save within two system calls.
//
// Losing the index loses no edit: then no version is ours, and files are compared to
// the present state of their intents.
package projection
