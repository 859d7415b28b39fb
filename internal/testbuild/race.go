//go:build race

package testbuild

// raceEnabled says whether the race detector looks at the tests.
const raceEnabled = true
