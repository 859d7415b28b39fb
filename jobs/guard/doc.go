// Package guard finds the files of a change that only a person may approve although no pattern of
// policy.protected_paths names them: files that a link of the base branch puts in the place of
// protected ones, files that instructions of the base branch import, keys of JSON files, and files
// that the verify commands of the base branch run. Everything is read from the base branch, so
// that a change does not say what of it is looked at.
//
// Commands can run files that no text of theirs names, such as the tests themselves and what a
// script calls. A review reads these; this package does not know of them.
package guard
