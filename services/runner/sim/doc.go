// Package sim runs the rules of package flow, driven by package machine, in a
// world of its own: one thread, one seed, faults everywhere. Inputs come twice
// and out of order, runners crash between any two effects, workers die with
// their work or report it late, streams that are not durable vanish, people
// answer when they like and push to the base branch. Run checks the invariants
// that must hold in spite of all that, and returns the same for the same seed.
package sim
