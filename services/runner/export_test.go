package runner

import (
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// Snapshots has a test read the snapshots of runners.
func Snapshots(b *bus.Bus, every int) machine.Snapshots {
	return newSnapshots(&Config{Bus: b, SnapshotEvery: every})
}

// PolicyOf has a test look for the newest policy of an intent.
var PolicyOf = policyOf
