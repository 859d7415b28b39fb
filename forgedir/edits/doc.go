// Package edits reads a person's changes to the files of intents.
//
// An intent's own file, .forge/intents/<id>.yaml, is the only one of which edits are
// read: title, body, type and risk, answers to questions, and `status: approved`.
// [Reader.Read] compares each file with the version that the person started from,
// which the file's last line names, and makes events of the differences; a change of
// anything else is a problem. The whole file counts or nothing of it: one problem,
// and it makes no event at all. Once the events are decided, [Reader.Decided] lets the
// projection replace the person's version.
package edits
