// Package flow holds the rules of pfl-forge: what follows from what. Two state
// machines share the work, and talk to each other only by events:
//
//   - Intent, one per intent: from a submitted intent through analysis, tasks,
//     reviews and merges to its end. It is composed of small machines, each in a
//     package of its own with its state, its table or diagram, and its doors:
//
//     control   what a person may ask, where
//     plan      what comes before the tasks: analysis, questions, approval, dependencies, children
//     task      one task: the table of stages, Changes in task/table.go, says where it goes after
//     a review, a verify, a conflict; overlaps; protected paths
//     goal      the strategy of a goal's task: iterations
//     retry     what follows an attempt that failed; rule has the table of reasons
//     dispatch  commands: held while there is a pause, waiting for budget, open, withdrawn
//     pause     what is paused, by whom
//     outbox    open commands, timers and messages
//     session   names of agents' sessions
//     history   the record of runs
//
//   - Project, one per project: what spans intents. project.go says which part
//     acts on which event:
//
//     scheduler   admission, dependencies, parents and children, pauses of everything
//     mergequeue  the order of merges, and file locks
//     budget      the ledger, and the arithmetic of one call
//     knowledge   the lessons of finished runs
//     reflection  when to reflect, and which proposals to submit
//
// A machine is total and deterministic: no clock, no chance, no input or output.
// Time and ids come in as fields of events. Whoever drives it journals each
// applied event before any of its effects happens, so a machine can be rebuilt
// by folding its journal, and Pending names every effect that has to be in
// force, so that none is lost.
//
// A small machine touches no state but its own. What the others have to do because of
// its step it returns as data, which the composition carries out in order (commands.go).
package flow
