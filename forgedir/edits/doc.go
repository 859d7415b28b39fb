// Package edits reads a person's changes to the files of intents.
//
// An intent's own file, .forge/intents/<id>.yaml, is the only one of which edits are
// read: title, body, type and risk, answers to questions, and `status: approved`.
// [Reader.Read] compares each file with the version that the person started from,
// which the file's last line names, and makes events of the differences; a change of
// anything else is a problem. The whole file counts or nothing of it: one problem,
// and it makes no event at all. Once the events are decided, [Reader.Decided] lets the
// projection replace the person's version.
//
// # Three versions
//
// An edit is compared with two others: base, which it started from, and now, which the
// present state makes. A field that is as in base was not changed by the person, even if
// now differs; one that is as in now is decided already. Only the rest becomes events, so
// decisions that came while an editor was open are neither undone nor asked for again.
//
// If base is not known any more, since the cache was removed or the editor was open for
// fifty versions, now stands in for it. Then a difference may be a decision of meanwhile:
// fields that the program itself changes are not compared if the edit is of an older
// revision, and an approval has to name the present plan.
package edits
