package objects

import (
	"path/filepath"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge/git"
)

// Database is the object database of a repository: it reads objects and makes new ones,
// and knows no refs. Its methods are safe for concurrent use, also by several
// processes.
type Database struct {
	// common is the repository's git directory.
	common string
	// hub is our own git directory, which reads and writes the repository's
	// objects and nothing else of it.
	hub hub
	// more are object directories beside the repository's own.
	more []string
	// readers are shared by all calls.
	readers catFiles
	// line is the newest result of Trees; nil before the first.
	line atomic.Pointer[line]
	// patches are the patch ids of pairs of trees.
	patches memo[string]
	// changes are the results of Changes that are not long, by pairs of trees.
	changes memo[[]FileChange]
	// checked has the limits with which commits passed CheckCommits: each as a pair with itself.
	checked memo[Limits]
}

// NewDatabase returns the object database of the repository with this git directory.
// WriteHub comes before any other method.
func NewDatabase(gitDir string) *Database {
	return &Database{common: gitDir, hub: hub(filepath.Join(gitDir, "pfl-forge", "hub.git"))}
}

// NewView returns the object database of a repository to read from, without a trace in
// it: the hub is made in dir, an empty directory of the caller's. more are object
// directories beside the repository's own, such as the quarantine of a push.
// WriteHub comes before any other method.
func NewView(gitDir, dir string, more ...string) *Database {
	return &Database{common: gitDir, hub: hub(dir), more: more}
}

// WriteHub makes the git directory under which commands on objects run, and removes
// what killed processes left in its quarantine. Nothing in it changes what git shows to
// a person.
func (db *Database) WriteHub() error { return db.hub.write(db.common) }

// Shallow returns the list of commits at which a shallow clone ends; nil when the
// repository has all of its history.
func (db *Database) Shallow() []byte { return db.hub.shallow() }

// Close ends the git processes that wait for the next call. A Database that is used
// afterwards starts them again. Without Close they end by themselves soon after the
// last call, or with this process.
func (db *Database) Close() { db.readers.end() }

// Identity returns the committer of the commits that the service makes.
func (*Database) Identity() git.Identity { return git.Identity{}.OrDefault() }

// ObjectDir returns the directory of the repository's own objects.
func (db *Database) ObjectDir() string { return filepath.Join(db.common, "objects") }

// ObjectCommand returns a command on objects alone. No ref, configuration, hook, graft
// or attribute file of the repository has an effect on it.
func (db *Database) ObjectCommand() git.Command {
	c := git.Command{Dir: string(db.hub), GitDir: string(db.hub), Env: []string{"GIT_OBJECT_DIRECTORY=" + db.ObjectDir()}}
	if len(db.more) > 0 {
		c.Env = append(c.Env, alternates(db.more...))
	}
	return c
}
