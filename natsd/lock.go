package natsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pollEvery is the interval at which a held lock is tried again: flock cannot wait for a
	// context.
	pollEvery = 2 * time.Millisecond
	// maxLockFile bounds the bytes of the lock file that are read.
	maxLockFile = 4 << 10
)

// HeldError is returned by [Start] for a store that another process owns.
type HeldError struct {
	// Dir is the store directory.
	Dir string
	// PID is the owner's process, 0 if it has not written it yet.
	PID int
	// Since is the time of the owner's start, in UTC.
	Since time.Time
	// Purpose is that of the owner's Config.
	Purpose string
}

// Error returns who owns the store and what to do.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("natsd: store %s is in use by another process: wait for it to end", e.Dir)
	}
	return fmt.Sprintf("natsd: store %s is in use by process %d (%q) since %s: wait for it to end, or join it",
		e.Dir, e.PID, e.Purpose, e.Since.Local().Format("2006-01-02 15:04:05"))
}

// holder is the content of the lock file. It only informs people: the flock decides who owns
// the store.
type holder struct {
	PID     int       `json:"pid"`
	ID      string    `json:"id"`
	Since   time.Time `json:"since"`
	Purpose string    `json:"purpose"`
}

// lock is a flock that this process holds. It is released explicitly: a child process between
// fork and exec shares the open file, and closing alone would leave the lock with the child.
type lock struct {
	file *os.File
	dir  *storeDir
}

// acquire takes the lock or returns a *HeldError. It waits up to patience while the lock is
// held and the file names no living process: then Find holds it for an instant, or an owner
// has not written its name yet, or a killed one is just ending.
func acquire(ctx context.Context, d *storeDir, me holder, patience time.Duration) (*lock, error) {
	path := filepath.Join(d.path, lockFile)
	deadline := time.Now().Add(patience)
	for {
		f, err := d.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, explain("open", path, err)
		}
		l := &lock{file: f, dir: d}
		switch err := flock(f, unix.LOCK_EX); {
		case err == nil && l.current():
			if err := l.write(me); err != nil {
				l.release()
				return nil, explain("write", path, err)
			}
			return l, nil
		case err == nil: // of a file that was removed meanwhile
			_ = f.Close()
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			_ = f.Close()
			return nil, explain("lock", path, err)
		}
		h := readHolder(f)
		_ = f.Close()
		if alive(h.PID) || time.Now().After(deadline) {
			return nil, &HeldError{Dir: d.path, PID: h.PID, Since: h.Since, Purpose: h.Purpose}
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// current reports whether the locked file is still the one in the directory. A
// person may have removed the store meanwhile, and a lock on a removed file
// protects nothing.
func (l *lock) current() bool {
	mine, err1 := l.file.Stat()
	there, err2 := os.Lstat(filepath.Join(l.dir.path, lockFile))
	return err1 == nil && err2 == nil && os.SameFile(mine, there)
}

// write names the owner in the lock file.
func (l *lock) write(h holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(append(b, '\n'), 0)
	return err
}

// release gives the store to whoever is next.
func (l *lock) release() {
	_ = l.file.Truncate(0)
	_ = unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
	_ = l.file.Close()
}

// isHeld reports without waiting whether a process holds the lock, and which. It may take a
// shared lock for an instant, for which acquire waits.
func isHeld(d *storeDir) (holder, bool, error) {
	f, err := d.root.Open(lockFile)
	if err != nil {
		return holder{}, false, err
	}
	defer func() { _ = f.Close() }()
	switch err := flock(f, unix.LOCK_SH); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return readHolder(f), true, nil
	case err != nil:
		return holder{}, false, err
	}
	return holder{}, false, unix.Flock(int(f.Fd()), unix.LOCK_UN)
}

// flock takes a lock without waiting for others. Its error is EWOULDBLOCK if it is held.
func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// readHolder reads the lock file. It returns the zero holder for anything that is not a whole
// record.
func readHolder(f *os.File) holder {
	var h holder
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxLockFile))
	if err != nil || json.Unmarshal(b, &h) != nil {
		return holder{}
	}
	return h
}

// alive reports whether a process exists, whoever's it is.
func alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}

// pause waits until the lock is worth another try.
func pause(ctx context.Context) error {
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("natsd: %w", ctx.Err())
	case <-t.C:
		return nil
	}
}
