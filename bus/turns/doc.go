// Package turns has projects take turns at the workers, and bounds the calls of a project.
//
// The replicas of a step take commands in the order in which these are stored. So
// that a project with many commands keeps no other one waiting behind them, few
// commands are stored where workers take them: about as many as they take in a tenth
// of a second, and at least two. The others are held on subjects of their own in the
// same stream, one line for each project, and [Turns.Run] moves them on: one command
// of a project, then one of the next. How many workers there are need not be known.
//
// The calls of a project are the commands of its intents that workers may take or have taken.
// Where they are bounded, all its commands are held first, and move on only while fewer than
// the bound are there. What is there is counted in the stream, so no process has to remember
// anything. Any number of runners may move commands. That two do not both fill the last place
// is decided by the server: whoever moves a project's commands first puts its mark on the
// project's turn, counts after that, and publishes on condition that the mark is still its own.
//
// A command is stored for the workers before it is removed where it was held. A process
// that dies between the two leaves a command that is in both places, or was even carried
// out; the next one finds it there, or that its result is not waited for any more.
package turns
