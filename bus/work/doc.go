// Package work is the side of a worker: it takes the commands of a step, holds a lease on
// what it works on, and hands in the result.
//
//	Commands.Consume   gives a handler one Job after the other
//	Leases.Acquire     waits until no other replica works on the same task
//	Results.Publish    returns when a runner has journaled what follows from the result
//
// A command comes at least once, and again whenever its handler fails. A lease keeps two
// replicas from working on one task at the same time.
package work
