package forge

import "time"

// VerifyReport is the result of the project's verify commands on one tree.
type VerifyReport struct {
	// Passed says that every verify command exited with 0.
	Passed bool
	// Command is the first one that failed; empty if all passed.
	Command string
	// Output is the end of that command's output.
	Output string
	// Runs are the commands that ran, in their order, also those that passed.
	Runs []CheckRun
	// Proof says whether the change's tests fail without the change; nil where that was not looked at.
	Proof *CheckRun
}

// CheckRun is one run of a command of the project on exactly one tree.
type CheckRun struct {
	// ID is unique within its report, such as v1 for the first verify command.
	ID string
	// Name is the name of a check of the project; empty if the command has none.
	Name string
	// Command is the command line that ran.
	Command string
	// Tree is the tree that it ran on.
	Tree string
	// Passed says that it did what was expected of it.
	Passed bool
	// ExitCode is its exit status; -1 if it was ended because it overran a limit.
	ExitCode int
	// Output is the end of what it printed.
	Output string
	// Duration is how long it ran.
	Duration time.Duration
}
