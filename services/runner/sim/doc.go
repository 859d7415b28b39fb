// Package sim tests the rules of package flow, driven by package machine, in a
// simulated world: one goroutine, one seed, faults everywhere.
//
// [Run] plays one seed. At first things go wrong: events arrive twice and out of order,
// runners crash between any two effects, workers die with their work or report it late,
// streams that are not durable vanish, people answer when they like and push to the base
// branch. Then the faults stop, and the world has to come to rest: every intent ends or
// waits for a person. Run returns the first invariant that does not hold, or nil, and
// the same for the same seed; with trace it returns the actions that led there.
//
// To read it: world.go is the world and its streams, sim.go the loop that chooses
// the next action, workers.go and goal.go what workers do with a command, people.go
// what people ask for, package publishers what becomes of it where it came from, pulls.go
// what happens at a forge (package outside), package trunk the base branch, money.go
// budgets and costs, check.go and decision.go the invariants. planted_test.go shows that
// each known kind of bug is found.
package sim
