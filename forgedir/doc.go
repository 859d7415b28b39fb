// Package forgedir keeps the .forge folder of local mode: what a person writes
// there becomes events, and what is decided becomes files.
//
// Whoever drives it goes round in this order: Drafts, CheckDependencies and
// Edits; publish the events; Decided with what became of them; Write for every
// intent of which Projected is not the journal's last sequence; WriteState.
//
// The journal is the truth; the files are its projection and a person's desk.
//
//   - A file is replaced only while it holds what this package wrote last, or a
//     person's edit whose events were decided. Everything else stays as it is,
//     or, where nothing reads edits, is kept under .forge/kept first.
//   - Every version that is about to appear is recorded in .forge/cache before
//     it appears, so after a crash at any point each file is recognised as
//     ours or as a person's.
//   - A file is put in place by swapping it with its successor. What the swap
//     brought out is looked at again: an edit that came in between goes back.
//     The last old file stays for a few seconds, for editors that still write
//     to it in place. What is left is a writer that holds a file open for longer
//     and, where the file system cannot swap, a save within two system calls.
//
// The files of goals, below .e8, are shown only: lines are added to them, each
// once, as its key tells, and nothing else in them changes but the counts.
//
// Losing .forge/cache loses no edit: a file that is not known to be ours is
// compared to the present state of its intent.
package forgedir
