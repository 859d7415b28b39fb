// Package flow holds the rules of pfl-forge: which effects follow from which event.
// Two state machines share the work, and reach each other only by messages: Intent,
// one per intent, and Project of package projects, one per project. Each is composed
// of small machines in packages, with states and tables or diagrams, of their own.
//
// # Intent
//
// Intent leads an intent from its submission through analysis, tasks, reviews and merges to
// its end. messages.go says which part acts on which message; run.go leads from phase to phase.
//
//	control   which verbs a person may use, in which phase; approval: who may approve
//	plan      analysis, questions, approval, dependencies, children: all before the tasks
//	task      the stages of one task; Changes in table.go is the table of its ways
//	goal      the iterations of a goal's task
//	retry     what follows an attempt that failed; rule/failure.go has the table of reasons
//	dispatch  commands: held during a pause, waiting for budget, open, withdrawn
//	pause     what is paused, and by whom
//	outbox    commands that are open, timers, and messages that wait for an answer
//	session   the names of agents' sessions
//	history   the record of runs
//	rule      the names of rules, and small things that all of these share
//	cause     the line of a command's output that says why it failed
//
// # Project
//
// Project decides what spans intents. Package projects says which part acts on which message.
//
//	scheduler   admission, dependencies, parents and children, pauses of the whole project
//	mergequeue  the order of merges, and file locks
//	obstacle    what stops all intents of a project: accounts of agents that refuse calls, an origin that is away, a red base branch
//	budget      how much one call may cost, and the ledger that intents share
//	knowledge   the lessons of finished runs
//	reflection  when to reflect, and which proposals to submit
//
// # Determinism
//
// A machine is total and deterministic: no clock, no chance, no input or output. Time
// and ids come in as fields of events. Whoever drives it journals each applied event
// before any of its effects happens, so a machine can be rebuilt by folding its journal,
// and Pending names every effect that has to be in force, so that none is lost.
//
// A small machine touches no state but its own, and the questions of the intent to a
// person (Clarifications), which plan and task ask. What the others have to do because of
// its step it returns as data, which the composition carries out in order (commands.go).
package flow
