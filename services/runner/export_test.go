package runner

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// Snapshots has a test read the snapshots of runners.
func Snapshots(b *bus.Bus, every int) machine.Snapshots {
	return newSnapshots(&Config{Bus: b, SnapshotEvery: every})
}

// PolicyOf has a test look for the newest policy of an intent.
var PolicyOf = policyOf

// OpenBooks returns a function that opens sums of a test's own, of intents and projects.
func OpenBooks[T adder](j *journal.Journal, empty func() T) func(context.Context, forge.ProjectID) (T, func(), error) {
	return newBooks(j, true, empty).open
}
