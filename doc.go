// Package forge is the vocabulary of pfl-forge: the things that people, agents
// and services talk about (Intent, Task, Review, Observation, History), and the
// messages by which the services work together (Event, Command, Result, Record).
//
// It holds plain data and the rules that make a value well formed, nothing
// else: what follows from what is decided in services/runner/flow, and how a
// value travels is known to package bus alone.
package forge
