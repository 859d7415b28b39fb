// Package flow holds the rules of pfl-forge: what follows from what. Two state
// machines share the work, and talk to each other only by events:
//
//   - Intent, one per intent: from a submitted intent through analysis, tasks,
//     reviews and landings to its end. Its rules are in person.go and pause.go
//     (what people ask), analyze.go, knowledge.go, gate.go, task.go, goal.go,
//     parts.go, land.go, forecast.go, money.go, failure.go and finish.go.
//   - Project, one per project: what spans intents. Its parts are packages of their
//     own: scheduler admits intents and connects those that depend on others,
//     mergequeue orders merges and gives file locks, budget keeps the ledger,
//     knowledge remembers, reflection proposes. project.go says which part acts on
//     which event.
//
// A machine is total and deterministic: no clock, no chance, no input or output.
// Time and ids come in as fields of events. Whoever drives it journals each
// applied event before any of its effects happens, so a machine can be rebuilt
// by folding its journal, and Pending names every effect that has to be in
// force, so that none is lost.
//
// A task moves through these stages:
//
//	pending -> implementing -> rebasing -> reviewing -> landing -> done
//	              ^   ^            |           |           |
//	              |   +-- rejected, nothing committed, verify failed
//	              +------ reserving <- conflict
//	any stage -> parked (a timer) -> the same step again
//	landing -> waiting (a person's files are in the way) -> landing
//	any stage -> failed
//
// The task of a goal takes these ways instead, once for each iteration:
//
//	pending -> implementing -> rebasing -> summarizing -> judging -> landing -> done
//	              ^   ^                        |             |          |
//	              |   +-- verify failed -------+-------------+ not complete
//	              +------ reserving <- conflict
package flow
