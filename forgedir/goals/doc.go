// Package goals writes the files of goals, below .e8: lines of JSON with the iterations
// of goals and the knowledge that they found, and logs of iterations.
//
// These files are a person's, and of other programs too: nothing is read from them that
// would change a goal, and what is in them stays. [Writer.Write] adds the lines that a
// file lacks, each once, as its key tells, and puts the counts right that say how
// often knowledge helped. Nothing else of a line changes.
//
// Several goals may share a file, and goals may change the counts of each other. So
// the index notes of each goal where its lines are ([projection.GoalPlaces]); when a file
// turns out to be gone or changed, all goals with lines in it are written again.
//
// A crash while lines are appended leaves the first part of them. The next Write
// completes a line that was cut off, and adds those that are missing
// (TestGoalsKilledAnywhere of package forgedir). A file whose counts change is replaced as
// a whole, as the projection does it, unless a person saves it in that moment: then the
// goal counts as not written, and is looked at again (TestGoalsSavedAnywhere).
package goals
