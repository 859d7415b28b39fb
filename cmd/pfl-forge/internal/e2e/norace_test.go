//go:build !race

package e2e

// raceEnabled says whether the race detector looks at the tests.
const raceEnabled = false
