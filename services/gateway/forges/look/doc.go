// Package look makes intents of issues, and decisions of commands, for one forge.
//
// A [Watcher] is told by hooks, by changes of intents and by its own sweep that there may be something to see at an issue. It then
// asks the forge for all of it, and does what follows: it submits an intent, hands a person's wish to the runner, answers a command
// with a reaction, and brings its one comment on the issue up to date. Each of these can be done again: an intent and a wish have ids
// that follow from the issue and the comment, and the comment is found by its mark and its author. So a hint that is lost costs until
// the next sweep, one that is doubled costs a look, and a watcher that is killed anywhere goes on with its next look.
//
// All that is remembered of an issue stands in the mark of the comment: which intent it has, how often it was triggered, and which
// comment was read last. There is no database beside the forge and the journal.
package look
