// Package look makes intents of issues, and decisions of commands, for one forge.
//
// A [Watcher] is told by hooks, by changes of intents and by its own sweep that there may be
// something to see at an issue. It then asks the forge for all of it, and does what follows: it
// submits an intent, hands a person's wish to the runner, answers a command with a reaction,
// and brings its one comment on the issue up to date. Each of these can be done again: an
// intent and a wish have ids that follow from the issue and the comment, and the comment is
// found by its mark and its author. So a hint that is lost costs until the next sweep, one that
// is doubled costs a look, and a watcher that is killed anywhere goes on with its next look.
//
// # What is remembered
//
// All that is remembered of an issue stands in the mark of the comment: which intent it has, how
// often it was triggered, and which comment was read last. There is no database beside the forge
// and the journal, but a stream in which each intent has an entry that a limit counts. The mark
// counts only in a comment of our own account; everybody can write one like it. Whoever may
// write in the repository can edit our comment: one that is not as it was written (its mark has
// a sum) is left alone, and a new one is made from the intents that the runner has.
//
// # Whose rules
//
// The operator's rules decide, and the file pfl-forge-intake.yaml of the repository's
// default branch can make what follows stricter. It is read whenever it is decided
// about an issue, so that a change of it counts from the next decision on:
//
//	no file                  the operator's rules alone
//	a file that is wrong     the same, and our comment and the log say why
//	no right to read it      the same
//	no answer of the forge   nothing is decided until there is one
//	a team that is unknown   no rule that names it matches; a stricter one that was passed over has a person asked
//
// # One look
//
//	the forge     the issue, who put its labels on, all comments
//	the mark      of the first comment that is ours
//	the rules     if the issue is open and has no intent: submit it, or note why not. The repository's own are read for that, and the
//	              edits of the text: one behind the back of who asked has a person asked
//	the comments  behind the last one that was read, in their order: each command once
//	the runner    how the intent is, and whether the issue has another text by now than it was submitted with
//	our comment   written, or edited if its text is another one, and not more often than Config.Seldom
//	the issue     closed, once, if the intent is done
//
// # What goes wrong
//
//	a hook is lost           the next sweep looks
//	a hook comes twice       it is debounced, or one more look changes nothing
//	the forge limits us      nothing is asked until the time that it says; hints wait
//	the forge is away        the same, for half a minute each time
//	an answer is lost        the next look finds that it was done
//	the watcher is killed    the first sweep of the next one looks at all that changed within 30 days
//	limits cannot be read    what a limit counts is not let in; the look fails, and is made again after a minute
//	the runner is away       the look fails, and is made again after a minute; nothing is answered before it is decided
//	the text is edited       who did it, the forge says, and where it does not, deliveries; they only make what follows stricter
//	a person has no right    the permission is asked for when the command is carried out, not when it was written; so is the role
//
// # What it does not do yet
//
// Several watchers of one forge do not know of each other: each does all of it, the
// runner takes each wish once, and our comment may be there twice. Limits hold for all
// of them together: what a limit counts is noted in a stream before it is submitted.
package look
