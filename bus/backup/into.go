package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

const (
	// nameLayout is that of the names that WriteInto gives: a time in UTC, which sorts as text.
	nameLayout = "20060102T150405Z"
	// lockFile is locked while a backup is written into a folder of them.
	lockFile = ".pfl-forge-backups.lock"
	// maxManifest bounds the bytes that are read of a manifest that may be anything.
	maxManifest = 1 << 20
)

// partName matches the folder of a backup that is not complete, or not any
// more, with the name it was to have.
var partName = pattern.New(`^\.([0-9]{8}T[0-9]{6}Z)-[0-9]+$`)

// Kept says what WriteInto has done.
type Kept struct {
	// Manifest is that of the new backup.
	Manifest `yaml:",inline"`

	// Folder is the path of the new backup.
	Folder string `json:"folder" yaml:"folder"`
	// Backups are the paths of all that WriteInto made there and that are left,
	// the oldest first: the new one is the last.
	Backups []string `json:"backups" yaml:"backups"`
	// Removed are the paths of the backups that were removed, the oldest first.
	Removed []string `json:"removed" yaml:"removed"`
	// Left are the paths of what is named like a backup of WriteInto and is not surely one: it
	// does not count, and stays.
	Left []string `json:"left" yaml:"left"`
}

// WriteInto makes a backup in a new folder of parent, whose name is its time in UTC, and calls done
// with each stream. With keep above 0 it then removes the oldest of those that it made there, until
// so many are left. Nothing is removed before the new one is on the disk and has been read back.
//
// Names sort in the order in which backups were made: one that would come
// before the newest, because the clock went back or the second is the same, is
// named a second after that. Its manifest has the time of the clock. What an
// earlier call left that was killed does not count, and is removed.
//
// When an older backup cannot be removed, the result and an error are returned. Error: ErrBusy.
func (s *Store) WriteInto(ctx context.Context, parent string, keep int, done func(Stream)) (*Kept, error) {
	unlock, err := lock(parent)
	if err != nil {
		return nil, err
	}
	defer unlock()
	there, err := look(parent)
	if err != nil {
		return nil, err
	}
	unswept := there.sweep()
	name, err := there.next(time.Now().UTC())
	if err != nil {
		return nil, err
	}
	got := &Kept{Folder: filepath.Join(parent, name), Removed: []string{}, Left: there.left}
	m, err := s.write(ctx, got.Folder, name, done)
	if err != nil {
		return nil, err
	}
	got.Manifest = *m
	for _, old := range append(there.backups, name) {
		got.Backups = append(got.Backups, filepath.Join(parent, old))
	}
	if keep <= 0 || len(got.Backups) <= keep {
		return got, unswept
	}
	if _, err := Open(got.Folder); err != nil {
		return got, fmt.Errorf("no backup is removed, since the new one cannot be read back: %w", err)
	}
	for len(got.Backups) > keep {
		old := got.Backups[0]
		if err := remove(old); err != nil {
			return got, errors.Join(unswept, fmt.Errorf("%s is whole, but %s cannot be removed: %w", got.Folder, old, err))
		}
		got.Backups, got.Removed = got.Backups[1:], append(got.Removed, old)
	}
	return got, unswept
}

// ErrBusy says that another backup is written into the same folder.
var ErrBusy = errors.New("another backup is being written into it")

// lock keeps others from writing into a folder of backups. The lock goes with
// the process, however that ends.
func lock(parent string) (unlock func(), err error) {
	// A link in place of the file would have a file made, or locked, elsewhere.
	f, err := os.OpenFile(filepath.Join(parent, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no such folder", parent)
	}
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", parent, ErrBusy)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
}

// shelf is a folder of backups as it was found.
type shelf struct {
	path string
	// backups are the names of the backups that WriteInto made, the oldest first; parts are the
	// names of incomplete ones.
	backups, parts []string
	// left are the paths of Kept.
	left []string
}

// look reads a folder of backups.
func look(parent string) (*shelf, error) {
	entries, err := os.ReadDir(parent) // sorted by name
	if err != nil {
		return nil, err
	}
	s := &shelf{path: parent, left: []string{}}
	for _, e := range entries {
		name := e.Name()
		switch part := partName.FindStringSubmatch(name); {
		case isTime(name) && made(filepath.Join(parent, name), name):
			s.backups = append(s.backups, name)
		case part != nil && isTime(part[1]) && holdsNothingElse(filepath.Join(parent, name)):
			s.parts = append(s.parts, name)
		case isTime(name) || part != nil:
			s.left = append(s.left, filepath.Join(parent, name))
		}
	}
	return s, nil
}

// next returns the name of a backup that is begun now.
func (s *shelf) next(now time.Time) (string, error) {
	if n := len(s.backups); n > 0 {
		newest, err := time.Parse(nameLayout, s.backups[n-1])
		if err != nil {
			return "", err // cannot happen: look has parsed it
		}
		if !now.Truncate(time.Second).After(newest) {
			now = newest.Add(time.Second)
		}
	}
	for ; ; now = now.Add(time.Second) {
		name := now.Format(nameLayout)
		if !isTime(name) {
			return "", fmt.Errorf("%s: no name can follow that of the newest backup, %s: move that elsewhere", s.path, s.backups[len(s.backups)-1])
		}
		if _, err := os.Lstat(filepath.Join(s.path, name)); errors.Is(err, os.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}

// sweep removes the leftovers of calls that were killed. One that still goes on has the lock.
func (s *shelf) sweep() error {
	var failed []error
	for _, name := range s.parts {
		if err := os.RemoveAll(filepath.Join(s.path, name)); err != nil {
			failed = append(failed, fmt.Errorf("remove what a backup left that was not completed: %w", err))
		}
	}
	return errors.Join(failed...)
}

// remove removes a backup. It is no backup any more, by its name, before the
// first of its files is gone.
func remove(dir string) error {
	going := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+"-0")
	if err := os.Rename(dir, going); err != nil {
		return err
	}
	return os.RemoveAll(going)
}

// isTime reports whether a name is one that WriteInto gives.
func isTime(name string) bool {
	t, err := time.Parse(nameLayout, name)
	return err == nil && t.Format(nameLayout) == name
}

// made reports whether a folder is surely a backup that WriteInto made under
// this name, and not one that a person has put there, or renamed to keep it.
func made(dir, name string) bool {
	if !holdsNothingElse(dir) {
		return false
	}
	f, err := os.Open(filepath.Join(dir, manifestFile))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	var m Manifest
	err = json.NewDecoder(io.LimitReader(f, maxManifest)).Decode(&m)
	return err == nil && m.Format == format && m.Name == name
}

// holdsNothingElse reports whether a path is a folder, and no link to one, with
// files of a backup, of all or some of its streams, and with nothing else: a
// file that a person put there is not removed.
func holdsNothingElse(dir string) bool {
	top, ok := list(dir)
	if !ok {
		return false
	}
	for _, e := range top {
		if e.Name() == manifestFile && e.Type().IsRegular() {
			continue
		}
		files, ok := list(filepath.Join(dir, e.Name()))
		if !ok || !slices.Contains(streams.Copied(), e.Name()) {
			return false
		}
		for _, file := range files {
			if !file.Type().IsRegular() || file.Name() != stateFile && !archiveName.MatchString(file.Name()) {
				return false
			}
		}
	}
	return true
}

// list returns the entries of a folder. A link to one is none.
func list(dir string) ([]os.DirEntry, bool) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return nil, false
	}
	entries, err := os.ReadDir(dir)
	return entries, err == nil
}

// syncDir has the names in a folder on the disk when it returns.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
