// Package subjects builds and parses every NATS subject of pfl-forge, and nothing else
// does: a builder stands beside its parser. A builder fails when an id is not one, so that
// no text from outside becomes a token, a wildcard or several tokens. The table of all
// subjects, with the stream that stores each, is at the top of subjects.go.
//
// Subjects that end in a wildcard are filters: [Changes], [Transcripts], [CommandsFor].
// Names of people and systems, and keys of timers, are escaped; see [Personal].
package subjects
