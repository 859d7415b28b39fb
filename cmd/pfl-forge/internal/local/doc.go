// Package local is pfl-forge in one repository of one person: the embedded server,
// the runner, the workers and the .forge folder in one process.
//
// One process at a time owns the repository's server. A run owns it for as long as
// it goes on, and whoever comes meanwhile connects to it. Without a run, a command
// owns it for the moment that it needs.
package local
