// Package config reads pfl-forge.yaml, the file at the root of a repository that says how
// pfl-forge works on it.
//
// [Parse] reads the file's content, which a worker takes from a commit and never from a
// working tree; [Default] returns the values that hold without a file. Either way the result
// is a [Project]:
//
//	project.go       Project and its sections, with their defaults
//	agents.go        which back end does which kind of work
//	recipe.go        deterministic changes that the repository defines
//	schedule.go      intents that are submitted again and again
//	check*.go        what makes a value wrong
//
// A file is either taken as a whole or refused with every error in it, each as
// "pfl-forge.yaml:line: field: reason". The repository's content is not trusted: every
// value is checked here against what it may do (a name that could be an option, a path that
// leads elsewhere, an environment variable that changes how commands run), so that whoever
// uses a Project need not.
package config
