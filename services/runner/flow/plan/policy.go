package plan

import "github.com/pfl-forge/pfl-forge"

// Policy is the policy in force, and how far it is known.
type Policy struct {
	forge.Policy
	// Known says that it is the project's own, not the default.
	Known bool
	// Unread says that it has to be read before the first step.
	Unread bool
	// Reading says that it is being read again, because a person may have changed
	// it.
	Reading bool
	// AsksFirst says that it decides whether a person lets the intent be analyzed.
	AsksFirst bool
	// Read says that a worker was asked for it in this run, whatever it said.
	Read bool
}
