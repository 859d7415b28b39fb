// Package demand reads whether agents and commands need a sandbox, and how much of the machine
// each may take, as the user who starts pfl-forge says: in the environment (FORGE_SANDBOX) or
// on the command line. A repository cannot say so; its own policy can only be stricter.
package demand

import "fmt"

// Demand says whether a sandbox is needed. The zero value is ByProject.
type Demand string

// The demands.
const (
	// ByProject runs nothing that a model or another system wrote without a sandbox.
	ByProject Demand = ""
	// Require runs nothing at all without one, and grants nothing beside it.
	Require Demand = "require"
	// Unconfined makes no sandbox, except for projects that require one: agents and
	// commands reach all that the user of the process reaches.
	Unconfined Demand = "unconfined"
)

// Variable is the environment variable that has the demand.
const Variable = "FORGE_SANDBOX"

// Parse returns the demand of a text; ByProject for an empty one, and for project.
func Parse(s string) (Demand, error) {
	switch d := Demand(s); d {
	case "", "project":
		return ByProject, nil
	case Require, Unconfined:
		return d, nil
	}
	return "", fmt.Errorf("%q is not project, %s or %s", s, Require, Unconfined)
}
