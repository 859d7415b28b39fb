package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/internal/pathpattern"
)

// Guard looks at the changes of one repository. It is safe for concurrent use.
type Guard struct {
	db     *objects.Database
	finder *objects.Finder
}

// New returns the Guard of a repository's objects.
func New(db *objects.Database) *Guard {
	return &Guard{db: db, finder: objects.NewFinder(db, config.Instructs, config.InstructsBelow)}
}

// Change is one commit on a commit of the base branch.
type Change struct {
	Base, Head git.OID
	// Files are the paths that differ.
	Files []string
	// Checks decide criteria of the change's goal. Those that are commands are
	// run besides those of the configuration.
	Checks []forge.Check
}

// Findings are about one change.
type Findings struct {
	// Reasons say, a phrase for each file, why a person has to approve it; in
	// the order of the change's files.
	Reasons []string
	// Run are the files of the change that commands of the base branch run.
	Run []string
}

// Look returns the findings about a change, by the configuration of its base, which the caller
// has read. The commits are in the store; the files are those that differ between them.
func (g *Guard) Look(ctx context.Context, c Change, p *config.Project) (f Findings, err error) {
	if len(c.Files) == 0 {
		return f, nil
	}
	places, err := g.places(ctx, c.Base, p.Policy.ProtectedPaths)
	if err != nil {
		return f, err
	}
	run := commandFiles("verify", p.Verify)
	run.addAll(commandFiles("worktree_setup", p.WorktreeSetup))
	// Checks that this change's goal does not name decide over other goals.
	run.addAll(commandFiles("a check", p.CheckCommands()))
	for _, check := range c.Checks {
		run.addAll(commandFiles("a criterion", []string{check.Command}))
	}
	for _, file := range c.Files {
		why, runs := run.why(file)
		if runs {
			f.Run = append(f.Run, file)
		}
		if pathpattern.Any(p.Policy.ProtectedPaths, file) {
			continue // the rules see that
		}
		if more, ok := places.why(file); ok {
			why = more
		}
		if strings.EqualFold(file, config.FileName) { // a list that leaves it out could be emptied by a change
			why = "it decides what is verified, and who approves"
		}
		if key, err := g.changedKey(ctx, c, file, p.Policy.ProtectedPaths); err != nil {
			return f, err
		} else if key != "" {
			why = "its " + key
		}
		if why != "" {
			f.Reasons = append(f.Reasons, fmt.Sprintf("%s (%s)", file, why))
		}
	}
	return f, nil
}

// changedKey returns the key of a JSON file that differs, if a pattern such as
// package.json#scripts is about it. What cannot be read differs.
func (g *Guard) changedKey(ctx context.Context, c Change, file string, patterns []string) (string, error) {
	for _, p := range patterns {
		name, key, ok := strings.Cut(p, "#")
		if !ok || !pathpattern.Match(name, file) {
			continue
		}
		was, err := g.key(ctx, c.Base, file, key)
		if err != nil {
			return "", err
		}
		is, err := g.key(ctx, c.Head, file, key)
		if err != nil {
			return "", err
		}
		if !bytes.Equal(was, is) {
			return key, nil
		}
	}
	return "", nil
}

// maxJSON bounds a JSON file that is looked into, in bytes.
const maxJSON = 4 << 20

// key returns the value of a key of a JSON file in a commit, in one form for equal values; nothing
// if there is no such file or key, and the whole content if it is not an object. A key that
// occurs twice counts as the whole content, too: readers differ in which one they take.
func (g *Guard) key(ctx context.Context, at git.OID, file, key string) ([]byte, error) {
	data, err := g.db.ReadFile(ctx, at, git.Path(file), maxJSON)
	if errors.Is(err, git.ErrNotFound) {
		return nil, nil
	}
	if errors.Is(err, git.ErrTooLarge) {
		return []byte(at), nil
	}
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil || bytes.Count(data, []byte(`"`+key+`"`)) > 1 || bytes.Contains(data, []byte(`\u`)) {
		return data, nil //nolint:nilerr // then all of it counts
	}
	if object[key] == nil {
		return nil, nil
	}
	return json.Marshal(object[key])
}

// set has files with the reasons why they matter. A directory stands for all in it. Paths are in
// lower case: on some file systems a name in another case is the same file.
type set map[string]string

// add adds a file; the first reason stays. A file that matters for two reasons is shown with the
// one that was found first.
func (s set) add(file, why string) {
	file = strings.ToLower(path.Clean(file))
	if file == "." || file == ".." || strings.HasPrefix(file, "../") || path.IsAbs(file) {
		return
	}
	if _, ok := s[file]; !ok {
		s[file] = why
	}
}

func (s set) addAll(t set) {
	for f, why := range t {
		s.add(f, why)
	}
}

// why returns why a file matters: it is in the set, in a directory of it, or in the place of a
// directory on the way to one. Letter case is ignored.
func (s set) why(file string) (string, bool) {
	file = strings.ToLower(file)
	if at, ok := s.holder(file); ok {
		return s[at], true
	}
	var below []string
	for f := range s {
		if strings.HasPrefix(f, file+"/") {
			below = append(below, f)
		}
	}
	if len(below) == 0 {
		return "", false
	}
	return s[slices.Min(below)], true
}

// holds reports whether a file is in the set, or in a directory of it.
func (s set) holds(file string) bool {
	_, ok := s.holder(strings.ToLower(file))
	return ok
}

// holder returns the entry that a file, in lower case, is or is in.
func (s set) holder(file string) (string, bool) {
	for at := file; at != "."; at = path.Dir(at) {
		if _, ok := s[at]; ok {
			return at, true
		}
	}
	return "", false
}
