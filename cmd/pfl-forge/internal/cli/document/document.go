// Package document is the form in which commands print intents: as data with -o json and -o yaml,
// and as text for a person.
//
// A document is a struct with the names that programs rely on. It is built from the
// answers of the bus (a forge.Summary for lists, a forge.View for everything) by a function such
// as ItemOf, and printed by one such as PrintQuestion. Lists and descriptions embed or
// hold the same documents, so that a field has the same name wherever it stands: Item is
// in status, show and the inbox.
//
// To give programs one more field of an intent, add it to Item or to the document of the
// command that shows it, and set it where that is built. Names are not changed and fields
// not removed: others parse them.
package document
