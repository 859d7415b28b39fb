package plan

import "github.com/pfl-forge/pfl-forge"

// Policy is the policy in force, and how far it is known. It is that of the project on
// the commit of the base branch that the newest analysis read, or that was read again
// since because a person said retry; before any of that it is forge.DefaultPolicy.
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
