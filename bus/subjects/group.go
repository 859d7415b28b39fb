package subjects

import (
	"fmt"

	forge "github.com/pfl-forge/pfl-forge"
)

// Group names the replicas of the services that serve a part of the projects. Those without a
// group are served by replicas without one; its name is empty.
type Group string

// maxGroup bounds the name of a group, in bytes: it is a part of names of consumers.
const maxGroup = 32

// ParseGroup returns s as the name of a group, which is not empty.
func ParseGroup(s string) (Group, error) {
	if _, err := forge.ParseReplicaID(s); err != nil || len(s) > maxGroup {
		return "", fmt.Errorf("group %q: use at most %d of a-z, 0-9 and hyphens, with a letter or digit at both ends", s, maxGroup)
	}
	return Group(s), nil
}

// Groups has the group of each project that has one.
type Groups map[forge.ProjectID]Group

// InGroups matches every command for a group's replicas.
const InGroups = "forge.command.*.in.>"

// EveryCommand matches every command.
const EveryCommand = "forge.command.>"

// ForAnyone reports whether commands of a step are for any replica of its service: no replica
// is named, and the group of the project does not matter, as it does where there are checkouts.
// The replicas share one consumer, which a runner makes, and need no right to make any.
func ForAnyone(step forge.Step) bool { return step.Service() == gateway }
