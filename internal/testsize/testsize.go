// Package testsize says how much of a long test to run.
//
// Tests that grow with a number (seeds, kills, edits by hand, rounds) have two sizes. By default
// a test is as small as it can be and still show that it works, so that go test work is
// quick on any machine. With PFL_FORGE_TEST=full it is as large as it has to be to find what is
// rare; the make targets of the long suites set it, and .ci/run calls them. A test has
// both sizes, none is skipped.
package testsize

import "os"

// Variable is the environment variable that asks for full sizes.
const Variable = "PFL_FORGE_TEST"

// Full reports whether tests are to run in full size.
func Full() bool { return os.Getenv(Variable) == "full" }

// Of returns the size of a test: quick, or full if that is asked for.
func Of(quick, full int) int {
	if Full() {
		return full
	}
	return quick
}

// First returns the first quick elements of a list of cases, or all of them if the full
// size is asked for.
func First[T any](quick int, cases []T) []T {
	return cases[:Of(min(quick, len(cases)), len(cases))]
}
