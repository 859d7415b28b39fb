// Package leftovers finds and removes the leftovers of finished intents: hidden refs,
// checkouts, agents' state and sessions, logs and whole transcripts. Their journals and
// merged changes stay; transcripts line by line expire by themselves.
package leftovers

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// Over reports whether an intent is over for good: it cannot be retried any more.
func Over(s *forge.Summary) bool { return jobs.Needed(s) == "" }

// Rest lists the refs, files and objects that an intent left.
type Rest struct {
	Key forge.Key
	// Refs counts the commits of attempts, under refs/forge/<intent>.
	Refs int
	// Paths are files and folders, absolute.
	Paths []string
	// Bytes is the size of Paths.
	Bytes int64
	// Objects are stored conversations and transcripts.
	Objects []objects.Name
}

// Sessions counts the stored conversations.
func (r *Rest) Sessions() int {
	n := 0
	for _, o := range r.Objects {
		if o.Kind == objects.Session {
			n++
		}
	}
	return n
}

// Empty reports whether nothing is left.
func (r *Rest) Empty() bool {
	return r.Refs == 0 && len(r.Paths) == 0 && len(r.Objects) == 0
}

// Places names the stores and folders in which intents leave something.
type Places struct {
	Bus   *bus.Bus
	Store *store.Store
	// Dirs are folders with an entry for each task or attempt, absolute.
	Dirs []string
}

// Find returns the things that an intent left.
func (p *Places) Find(ctx context.Context, key forge.Key) (*Rest, error) {
	r := &Rest{Key: key}
	name, err := git.ParseName(string(key.Intent))
	if err != nil {
		return nil, err
	}
	kept, err := p.Store.List(ctx, name)
	if err != nil {
		return nil, err
	}
	r.Refs = len(kept)
	objects, err := p.Bus.Objects.List(ctx, objects.Name{Project: key.Project, Intent: key.Intent})
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		r.Objects = append(r.Objects, o.Name)
	}
	for _, dir := range p.Dirs {
		if err := r.look(dir); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// look finds the files in a folder that are named after the intent.
func (r *Rest) look(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !belongs(e.Name(), r.Key.Intent) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		r.Paths = append(r.Paths, path)
		r.Bytes += size(path)
	}
	return nil
}

// belongs reports whether a name is one of an intent: of a task (fix-001), of a step of
// the whole intent or of a task (fix-analyze, fix-001-verify), or of an attempt's
// transcript (fix-001-review-2.ndjson). The names of another intent that begins alike
// are not: which steps tasks have, and where attempts are numbered, tells them apart.
func belongs(name string, intent forge.IntentID) bool {
	rest, ok := strings.CutPrefix(name, string(intent)+"-")
	if !ok {
		return false
	}
	rest, ext, file := strings.Cut(rest, ".")
	parts := strings.Split(rest, "-")
	task := isNumber(parts[0]) && len(parts[0]) >= 3
	if task {
		parts = parts[1:]
	}
	if file {
		return ext == "ndjson" && len(parts) == 2 && isStep(parts[0], task) && isNumber(parts[1])
	}
	return task && len(parts) == 0 || len(parts) == 1 && (isStep(parts[0], task) || task && parts[0] == "verify")
}

// isStep reports whether a word is a step of tasks, or one of whole intents.
func isStep(s string, task bool) bool {
	step, err := forge.ParseStep(s)
	return err == nil && step.OfTask() == task
}

// isNumber reports whether a text is a whole number.
func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// size adds up what files have; what cannot be read counts nothing.
func size(path string) int64 {
	n := int64(0)
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // somebody else may be removing it
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}

// Remove removes the things that Find returned. One that is gone already does no harm, and
// the others are removed even if one cannot be.
func (p *Places) Remove(ctx context.Context, r *Rest) error {
	var errs []error
	if r.Refs > 0 {
		errs = append(errs, p.Store.Sweep(ctx, git.Name(r.Key.Intent)))
	}
	for _, name := range r.Objects {
		errs = append(errs, p.Bus.Objects.Delete(ctx, name))
	}
	for _, path := range r.Paths {
		errs = append(errs, removeAll(path))
	}
	return errors.Join(errs...)
}

// removeAll removes a path also where folders in it may not be written to.
func removeAll(path string) error {
	first := os.RemoveAll(path)
	if first == nil {
		return nil
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return first
	}
	defer func() { _ = root.Close() }()
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
