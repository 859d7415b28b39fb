// Package trust remembers what a person lets the repositories on their machine do. What a
// repository brings that runs or weakens something (config.Power) has effect only once its
// person has trusted exactly that content there, with a word of theirs or with a commit that
// they made in that very repository.
//
//	rule.go   which contents are a person's own: a pure rule over the log of HEAD
//	store.go  the store, one file for each repository in the user's state directory
//	guard.go  both together, for one repository
//
// Nothing that a repository contains can claim trust: the store is the user's, and its entries
// name the repository by its path and by a random id that is made in its git directory, which
// no clone brings along.
package trust
