// Package repository is a project's repository as a worker sees it: commits, the
// base branch, checkouts, pfl-forge.yaml, and the agents and commands that run in
// it.
//
// A [Set] has the repositories of one process, which all workers in it share. For
// each command a worker calls [Set.Do], which gives it a [Job]. Configuration is
// read from commits of the base branch only, never from what an agent wrote.
package repository
